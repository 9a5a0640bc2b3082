//! The standard formats of strings (JSON Schema Validation 2020-12, section 7.3).

/// The standard formats.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Format {
    Date,
    Time,
    DateTime,
    Uuid,
    Ipv4,
    Duration,
    Email,
    IdnEmail,
    Hostname,
    IdnHostname,
    Ipv6,
    Uri,
    UriReference,
    Iri,
    IriReference,
    UriTemplate,
    JsonPointer,
    RelativeJsonPointer,
    Regex,
}

/// Which labels in Punycode (`xn--` and more) the host names of a format may have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Punycode {
    /// Those that decode to a valid label, which is checked by code.
    Checked,
    /// None: everything that remains is a valid host name.
    Refused,
    /// All: no valid host name is missing.
    Unchecked,
}

impl Format {
    pub(crate) const ALL: [Format; 19] = [
        Format::Date,
        Format::Time,
        Format::DateTime,
        Format::Uuid,
        Format::Ipv4,
        Format::Duration,
        Format::Email,
        Format::IdnEmail,
        Format::Hostname,
        Format::IdnHostname,
        Format::Ipv6,
        Format::Uri,
        Format::UriReference,
        Format::Iri,
        Format::IriReference,
        Format::UriTemplate,
        Format::JsonPointer,
        Format::RelativeJsonPointer,
        Format::Regex,
    ];
    /// The formats that are built once for all grammars.
    pub(crate) const COMMON: [Format; 5] = [Format::Date, Format::Time, Format::DateTime, Format::Uuid, Format::Ipv4];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Date => "date",
            Format::Time => "time",
            Format::DateTime => "date-time",
            Format::Uuid => "uuid",
            Format::Ipv4 => "ipv4",
            Format::Duration => "duration",
            Format::Email => "email",
            Format::IdnEmail => "idn-email",
            Format::Hostname => "hostname",
            Format::IdnHostname => "idn-hostname",
            Format::Ipv6 => "ipv6",
            Format::Uri => "uri",
            Format::UriReference => "uri-reference",
            Format::Iri => "iri",
            Format::IriReference => "iri-reference",
            Format::UriTemplate => "uri-template",
            Format::JsonPointer => "json-pointer",
            Format::RelativeJsonPointer => "relative-json-pointer",
            Format::Regex => "regex",
        }
    }
}
