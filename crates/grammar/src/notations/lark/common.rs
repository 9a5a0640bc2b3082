//! The library that `%import common` brings in: the terminals of Lark's `common`, in our words.

/// The library as a Lark text. Its terminals match the same as those of Lark; look-behind is replaced by a description
/// of what they may contain.
pub(super) const COMMON: &str = r##"
DIGIT: "0".."9"
HEXDIGIT: /[0-9a-fA-F]/
INT: DIGIT+
SIGNED_INT: /[+-]/? INT
DECIMAL: INT "." INT? | "." INT
_EXP: /[eE]/ SIGNED_INT
FLOAT: INT _EXP | DECIMAL _EXP?
SIGNED_FLOAT: /[+-]/? FLOAT
NUMBER: FLOAT | INT
SIGNED_NUMBER: /[+-]/? NUMBER
_STRING_INNER: /.*/
_STRING_ESC_INNER: /([^"\\\n]|\\[^\n])*/
ESCAPED_STRING: "\"" _STRING_ESC_INNER "\""
LCASE_LETTER: "a".."z"
UCASE_LETTER: "A".."Z"
LETTER: UCASE_LETTER | LCASE_LETTER
WORD: LETTER+
CNAME: /[A-Za-z_][A-Za-z0-9_]*/
WS_INLINE: /[ \t]+/
WS: /[ \t\f\r\n]+/
CR: /\r/
LF: /\n/
NEWLINE: (CR? LF)+
SH_COMMENT: /#[^\n]*/
CPP_COMMENT: /\/\/[^\n]*/
C_COMMENT: /\/\*([^*]|\*+[^*\/])*\*+\//
SQL_COMMENT: /--[^\n]*/
"##;
