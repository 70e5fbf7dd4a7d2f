//! Certificates for tests.

/// A DER element.
pub fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut out = vec![tag];
    match u8::try_from(length) {
        Ok(short @ ..0x80) => out.push(short),
        _ => {
            let [a, b, ..] = length.to_le_bytes();
            out.extend([0x82, b, a]);
        }
    }
    out.extend(content);
    out
}

fn name(common: &str) -> Vec<u8> {
    let part = |oid: &[u8], tag, text: &[u8]| {
        let pair = [element(6, oid), element(tag, text)].concat();
        element(0x31, &element(0x30, &pair))
    };
    let wide: Vec<u8> = common.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let parts = [
        part(&[0x55, 4, 10], 0x13, b"Corp"),
        part(&[0x55, 4, 5], 0x13, b"a serial number is left out"),
        part(&[0x55, 4, 3], 0x1E, &wide),
    ];
    element(0x30, &parts.concat())
}

/// An unsigned certificate with this validity and these extensions.
pub(super) fn certificate(version: &[u8], validity: &[u8], extensions: &[u8]) -> Vec<u8> {
    let algorithm = element(0x30, &[]);
    let signed = [
        version.to_vec(),
        element(2, &[7]),
        algorithm.clone(),
        name("Über-Root"),
        element(0x30, validity),
        name("Über-Root"),
        element(0x30, &[]),
        extensions.to_vec(),
    ];
    let parts = [element(0x30, &signed.concat()), algorithm, element(3, &[0])];
    element(0x30, &parts.concat())
}

pub(super) fn version_3() -> Vec<u8> {
    element(0xA0, &element(2, &[2]))
}

pub(super) fn constraints(value: &[u8]) -> Vec<u8> {
    extensions(&[(&[0x55, 0x1D, 0x13], element(0x30, value))])
}

/// The extensions of a certificate: the identifier and the value of each.
pub(super) fn extensions(all: &[(&[u8], Vec<u8>)]) -> Vec<u8> {
    let all = all.iter().flat_map(|(oid, value)| {
        let parts = [element(6, oid), element(1, &[0xFF]), element(4, value)];
        element(0x30, &parts.concat())
    });
    element(0xA3, &element(0x30, &all.collect::<Vec<_>>()))
}

pub(super) fn years(from: &str, to: &str) -> Vec<u8> {
    let time = |text: &str| element(if text.len() > 13 { 0x18 } else { 0x17 }, text.as_bytes());
    [time(from), time(to)].concat()
}

/// An unsigned certificate: a root, or a self-issued leaf.
pub fn sample(from: &str, to: &str, is_ca: bool) -> Vec<u8> {
    let says = if is_ca {
        element(1, &[0xFF])
    } else {
        Vec::new()
    };
    certificate(&version_3(), &years(from, to), &constraints(&says))
}
