//! X.509 in DER (RFC 5280): names, validity and CA flag. Signatures are not verified.

use jiff::civil::{Date, DateTime, Time};

use super::Certificate;

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT: u8 = 0x06;
const UTF8_STRING: u8 = 0x0C;
const PRINTABLE_STRING: u8 = 0x13;
const T61_STRING: u8 = 0x14;
const IA5_STRING: u8 = 0x16;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const BMP_STRING: u8 = 0x1E;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// Tags `[0]` to `[3]` of a certificate: version, two identifiers, extensions.
const VERSION: u8 = 0xA0;
const IDENTIFIERS: [u8; 2] = [0x81, 0x82];
const EXTENSIONS: u8 = 0xA3;

const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1D, 0x13];
const KEY_USAGE: &[u8] = &[0x55, 0x1D, 0x0F];
/// Its bit `keyCertSign`, in the first byte.
const SIGNS_CERTIFICATES: u8 = 0x04;
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1D, 0x11];
/// Tags of a DNS name and of an IP address among them.
const SERVER_NAMES: [u8; 2] = [0x82, 0x87];

/// The attributes of names that are shown.
const ATTRIBUTES: [(&[u8], &str); 8] = [
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xF2, 0x2C, 0x64, 0x01, 0x19],
        "DC",
    ),
    (&[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x01], "E"),
];

/// The remaining elements of a sequence.
#[derive(Clone, Copy)]
struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let [tag, length, rest @ ..] = self.0 else {
            return None;
        };
        // Tag numbers of several bytes are not used.
        if tag & 0x1F == 0x1F {
            return None;
        }
        let (length, rest) = match *length {
            short @ ..=0x7F => (usize::from(short), rest),
            long @ 0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(long & 0x7F))?;
                let add = |length: usize, digit: &u8| length << 8 | usize::from(*digit);
                (digits.iter().fold(0, add), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, content))
    }

    /// Returns the next element's content if it has the tag.
    fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, content) = self.next()?;
        (found == tag).then_some(content)
    }

    /// Takes the next element if it has the tag.
    fn optional(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let content = ahead.expect(tag)?;
        *self = ahead;
        Some(content)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the certificates of a signed-data message (PKCS #7, RFC 2315); `None` if the bytes are
/// something else.
pub(super) fn in_message(der: &[u8]) -> Option<Vec<&[u8]>> {
    const SIGNED_DATA: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 7, 2];
    /// Tag `[0]`: the message's content, and the certificates in it.
    const CONTENT: u8 = 0xA0;
    let mut message = Elements(Elements(der).expect(SEQUENCE)?);
    if message.expect(OBJECT)? != SIGNED_DATA {
        return None;
    }
    let mut content = Elements(message.expect(CONTENT)?);
    let mut signed = Elements(content.expect(SEQUENCE)?);
    signed.expect(INTEGER)?;
    signed.expect(SET)?;
    signed.expect(SEQUENCE)?;
    let mut certificates = Elements(signed.optional(CONTENT).unwrap_or_default());
    let mut found = Vec::new();
    while !certificates.is_empty() {
        let from = certificates.0;
        certificates.expect(SEQUENCE)?;
        found.push(&from[..from.len() - certificates.0.len()]);
    }
    Some(found)
}

/// Parses a certificate; the error is the name of the invalid part.
pub(super) fn read(der: &[u8]) -> Result<Certificate, &'static str> {
    let mut file = Elements(der);
    let mut certificate = Elements(file.expect(SEQUENCE).ok_or("outer structure")?);
    if !file.is_empty() {
        return Err("length: trailing data");
    }
    let mut signed = Elements(certificate.expect(SEQUENCE).ok_or("content")?);
    certificate.expect(SEQUENCE).ok_or("signature algorithm")?;
    certificate.expect(BIT_STRING).ok_or("signature")?;
    if !certificate.is_empty() {
        return Err("signature");
    }
    let version = match signed.optional(VERSION) {
        None => 1,
        Some(version) => match Elements(version).expect(INTEGER) {
            Some([number @ 0..=2]) => number + 1,
            _ => return Err("version"),
        },
    };
    signed.expect(INTEGER).ok_or("serial number")?;
    signed.expect(SEQUENCE).ok_or("signature algorithm")?;
    let issuer = signed.expect(SEQUENCE).ok_or("issuer")?;
    let mut validity = Elements(signed.expect(SEQUENCE).ok_or("validity")?);
    let mut time = || validity.next().and_then(|(tag, text)| time(tag, text));
    let not_before = time().ok_or("first day")?;
    let not_after = time().ok_or("last day")?;
    let subject = signed.expect(SEQUENCE).ok_or("subject")?;
    signed.expect(SEQUENCE).ok_or("public key")?;
    for identifier in IDENTIFIERS {
        let _ = signed.optional(identifier);
    }
    let (is_ca, is_of_server) = match signed.optional(EXTENSIONS) {
        None => (false, false),
        Some(extensions) => role(extensions).ok_or("extensions")?,
    };
    if !signed.is_empty() {
        return Err("extensions");
    }
    Ok(Certificate {
        der: der.to_vec(),
        subject: name(subject).ok_or("subject")?,
        issuer: name(issuer).ok_or("issuer")?,
        is_self_issued: issuer == subject,
        not_before,
        not_after,
        signs_others: is_ca || version < 3,
        is_of_server,
    })
}

/// Returns the CA flag of the extensions, and whether they are those of a server.
fn role(extensions: &[u8]) -> Option<(bool, bool)> {
    let mut extensions = Elements(Elements(extensions).expect(SEQUENCE)?);
    let (mut is_ca, mut names_servers, mut is_for_signing) = (false, false, false);
    while !extensions.is_empty() {
        let mut extension = Elements(extensions.expect(SEQUENCE)?);
        let kind = extension.expect(OBJECT)?;
        let _is_critical = extension.optional(BOOLEAN);
        let value = extension.expect(OCTET_STRING)?;
        if kind == BASIC_CONSTRAINTS {
            let mut constraints = Elements(Elements(value).expect(SEQUENCE)?);
            let flag = constraints.optional(BOOLEAN);
            is_ca = flag.is_some_and(|flag| flag != [0]);
        } else if kind == KEY_USAGE {
            // The first byte is the number of unused bits.
            let usage = Elements(value).expect(BIT_STRING)?.get(1);
            is_for_signing = usage.is_some_and(|usage| usage & SIGNS_CERTIFICATES != 0);
        } else if kind == ALTERNATIVE_NAMES {
            let mut names = Elements(Elements(value).expect(SEQUENCE)?);
            while !names.is_empty() {
                let (tag, _) = names.next()?;
                names_servers |= SERVER_NAMES.contains(&tag);
            }
        }
    }
    Some((is_ca, names_servers && !is_for_signing))
}

/// Formats a name in one line, the last part first, as Windows does.
fn name(name: &[u8]) -> Option<String> {
    let mut parts = Vec::new();
    let mut names = Elements(name);
    while !names.is_empty() {
        let mut set = Elements(names.expect(SET)?);
        while !set.is_empty() {
            let mut pair = Elements(set.expect(SEQUENCE)?);
            let kind = pair.expect(OBJECT)?;
            let (tag, value) = pair.next()?;
            let known = ATTRIBUTES.iter().find(|(oid, _)| *oid == kind);
            if let Some((_, label)) = known {
                parts.push(format!("{label}={}", text(tag, value)));
            }
        }
    }
    parts.reverse();
    Some(parts.join(", "))
}

fn text(tag: u8, bytes: &[u8]) -> String {
    match tag {
        UTF8_STRING | PRINTABLE_STRING | IA5_STRING => String::from_utf8_lossy(bytes).into_owned(),
        T61_STRING => bytes.iter().map(|byte| char::from(*byte)).collect(),
        BMP_STRING => {
            let (units, _) = bytes.as_chunks::<2>();
            let units: Vec<u16> = units.iter().map(|unit| u16::from_be_bytes(*unit)).collect();
            String::from_utf16_lossy(&units)
        }
        _ => format!("#{}", hex::encode(bytes)),
    }
}

/// Parses `YYMMDDHHMM[SS]Z`, where years below 50 are of this century, or the same with four
/// digits.
fn time(tag: u8, text: &[u8]) -> Option<DateTime> {
    let digits = text.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |digits: &[u8]| {
        let add = |number: i16, digit: &u8| number * 10 + i16::from(digit - b'0');
        digits.iter().fold(0, add)
    };
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year = number(year);
            (if year < 50 { 2000 } else { 1900 } + year, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = digits.split_at_checked(4)?;
            (number(year), rest)
        }
        _ => return None,
    };
    let (pairs, []) = rest.as_chunks::<2>() else {
        return None;
    };
    let pairs: Vec<i8> = pairs
        .iter()
        .filter_map(|pair| i8::try_from(number(pair)).ok())
        .collect();
    let (month, day, hour, minute, second) = match pairs.as_slice() {
        [month, day, hour, minute] => (*month, *day, *hour, *minute, 0),
        [month, day, hour, minute, second] => (*month, *day, *hour, *minute, *second),
        _ => return None,
    };
    let date = Date::new(year, month, day).ok()?;
    Some(date.to_datetime(Time::new(hour, minute, second, 0).ok()?))
}
