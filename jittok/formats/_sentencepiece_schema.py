"""The messages of SentencePiece model files, as google.protobuf classes.

The tables below are the schema: field numbers, types and defaults, from the format's documentation. The classes are
made from them when this module is imported, in a pool of their own, so that they never meet those of another package
that describes the same file. Fields that are not listed are kept as unknown fields.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "jittok.sentencepiece"
_KIND = descriptor_pb2.FieldDescriptorProto


class Field(NamedTuple):
    """A field of a message: `kind` is a protobuf type, or the name of an enum or message of this file."""

    number: int
    name: str
    kind: str
    default: str = ""
    repeated: bool = False


# Strings are read as bytes: the library that writes these files does not insist on UTF-8.
TRAINER_SPEC = (
    Field(1, "input", "bytes", repeated=True),
    Field(2, "model_prefix", "bytes"),
    Field(3, "model_type", "ModelType", "UNIGRAM"),
    Field(4, "vocab_size", "int32", "8000"),
    Field(5, "accept_language", "bytes", repeated=True),
    Field(6, "self_test_sample_size", "int32", "0"),
    Field(7, "input_format", "bytes"),
    Field(10, "character_coverage", "float", "0.9995"),
    Field(11, "input_sentence_size", "uint64", "0"),
    Field(12, "mining_sentence_size", "int32"),
    Field(13, "training_sentence_size", "int32"),
    Field(14, "seed_sentencepiece_size", "int32", "1000000"),
    Field(15, "shrinking_factor", "float", "0.75"),
    Field(16, "num_threads", "int32", "16"),
    Field(17, "num_sub_iterations", "int32", "2"),
    Field(18, "max_sentence_length", "int32", "4192"),
    Field(19, "shuffle_input_sentence", "bool", "true"),
    Field(20, "max_sentencepiece_length", "int32", "16"),
    Field(21, "split_by_unicode_script", "bool", "true"),
    Field(22, "split_by_whitespace", "bool", "true"),
    Field(23, "split_by_number", "bool", "true"),
    Field(24, "treat_whitespace_as_suffix", "bool", "false"),
    Field(25, "split_digits", "bool", "false"),
    Field(26, "allow_whitespace_only_pieces", "bool", "false"),
    Field(30, "control_symbols", "bytes", repeated=True),
    Field(31, "user_defined_symbols", "bytes", repeated=True),
    Field(32, "vocabulary_output_piece_score", "bool", "true"),
    Field(33, "hard_vocab_limit", "bool", "true"),
    Field(34, "use_all_vocab", "bool", "false"),
    Field(35, "byte_fallback", "bool", "false"),
    Field(36, "required_chars", "bytes"),
    Field(40, "unk_id", "int32", "0"),
    Field(41, "bos_id", "int32", "1"),
    Field(42, "eos_id", "int32", "2"),
    Field(43, "pad_id", "int32", "-1"),
    Field(44, "unk_surface", "bytes"),
    Field(45, "unk_piece", "bytes", "<unk>"),
    Field(46, "bos_piece", "bytes", "<s>"),
    Field(47, "eos_piece", "bytes", "</s>"),
    Field(48, "pad_piece", "bytes", "<pad>"),
    Field(49, "train_extremely_large_corpus", "bool", "false"),
    Field(50, "enable_differential_privacy", "bool", "false"),
    Field(51, "differential_privacy_noise_level", "float", "0"),
    Field(52, "differential_privacy_clipping_threshold", "uint64", "0"),
    Field(53, "pretokenization_delimiter", "bytes"),
    Field(54, "seed_sentencepieces_file", "bytes"),
    Field(55, "auto_character_coverage", "bool", "false"),
)
NORMALIZER_SPEC = (
    Field(1, "name", "bytes"),
    Field(2, "precompiled_charsmap", "bytes"),
    Field(3, "add_dummy_prefix", "bool", "true"),
    Field(4, "remove_extra_whitespaces", "bool", "true"),
    Field(5, "escape_whitespaces", "bool", "true"),
    Field(6, "normalization_rule_tsv", "bytes"),
)
PIECE = (
    Field(1, "piece", "bytes"),
    Field(2, "score", "float", "0"),
    Field(3, "type", "PieceType", "NORMAL"),
)
# The other messages are kept as they are written; one that comes in several parts is all of these joined.
MODEL = (
    Field(1, "pieces", "Piece", repeated=True),
    Field(2, "trainer_spec", "bytes", repeated=True),
    Field(3, "normalizer_spec", "bytes", repeated=True),
    Field(4, "self_test_data", "bytes", repeated=True),
    Field(5, "denormalizer_spec", "bytes", repeated=True),
)
MODEL_TYPES = {"UNIGRAM": 1, "BPE": 2, "WORD": 3, "CHAR": 4}
PIECE_TYPES = {"NORMAL": 1, "UNKNOWN": 2, "CONTROL": 3, "USER_DEFINED": 4, "UNUSED": 5, "BYTE": 6}


def message_classes(
    file_name: str, package: str, messages: dict[str, tuple[Field, ...]], enums: dict[str, dict[str, int]]
) -> dict[str, Any]:
    """Make message classes.

    Parameters
    ----------
    file_name, package
        Names that the messages go by.
    messages
        Their fields; one that another has as a field stands anywhere.
    enums
        The members of each enumeration and their numbers.

    Returns
    -------
    dict of str to class
    """
    file = descriptor_pb2.FileDescriptorProto(name=file_name, package=package, syntax="proto2")
    for name, members in enums.items():
        enum = file.enum_type.add(name=name)
        for member, number in members.items():
            # Enums share their scope with each other, so their members begin with the name of the enum.
            enum.value.add(name=f"{name}_{member}", number=number)
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for number, field_name, kind, default, repeated in fields:
            field = message.field.add(name=field_name, number=number)
            field.label = _KIND.LABEL_REPEATED if repeated else _KIND.LABEL_OPTIONAL
            if kind in enums:
                field.type, field.type_name = _KIND.TYPE_ENUM, f".{package}.{kind}"
                default = f"{kind}_{default}"
            elif kind in messages:
                field.type, field.type_name = _KIND.TYPE_MESSAGE, f".{package}.{kind}"
            else:
                field.type = getattr(_KIND, f"TYPE_{kind.upper()}")
            if default:
                field.default_value = default
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in messages
    }


CLASSES = message_classes(
    "jittok/sentencepiece.proto",
    _PACKAGE,
    {"TrainerSpec": TRAINER_SPEC, "NormalizerSpec": NORMALIZER_SPEC, "Piece": PIECE, "Model": MODEL},
    {"ModelType": MODEL_TYPES, "PieceType": PIECE_TYPES},
)
