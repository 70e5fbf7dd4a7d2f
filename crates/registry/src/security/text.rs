//! Formatting of security descriptors as text (SDDL).

use std::fmt;

use super::sddl::{ALIASES, FLAGS, KINDS, LIST_FLAGS, RIGHTS};
use super::{Ace, Acl, SecurityDescriptor, Sid, control};

/// Rights with more bits than this are written as a number, as Windows mostly does.
const MOST_NAMES: u32 = 3;

impl fmt::Display for SecurityDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(owner) = &self.owner {
            write!(f, "O:{owner}")?;
        }
        if let Some(group) = &self.group {
            write!(f, "G:{group}")?;
        }
        let lists = [
            ("D:", &self.dacl, control::DACL_PRESENT, 0),
            ("S:", &self.sacl, control::SACL_PRESENT, 1),
        ];
        for (tag, list, present, shift) in lists {
            if self.control & present == 0 {
                continue;
            }
            f.write_str(tag)?;
            for (name, bit) in LIST_FLAGS {
                if self.control & bit << shift != 0 {
                    f.write_str(name)?;
                }
            }
            match list {
                Some(list) => list.fmt(f)?,
                None => f.write_str("NO_ACCESS_CONTROL")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Acl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.iter().try_for_each(|entry| entry.fmt(f))
    }
}

impl fmt::Display for Ace {
    /// A kind without a name, and additional data of an entry, is written in hexadecimal, which
    /// cannot be parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind, flags, sid, ..
        } = self;
        match KINDS.iter().find(|(_, known)| known == kind) {
            Some((name, _)) => write!(f, "({name};")?,
            None => write!(f, "(0x{kind:x};")?,
        }
        for (name, bit) in FLAGS {
            if flags & bit != 0 {
                f.write_str(name)?;
            }
        }
        f.write_str(";")?;
        self.write_rights(f)?;
        write!(f, ";;;{sid}")?;
        if !self.rest.is_empty() {
            write!(f, ";0x{}", hex::encode(&self.rest))?;
        }
        f.write_str(")")
    }
}

impl Ace {
    fn write_rights(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mask = self.mask;
        if let Some((name, _)) = RIGHTS.iter().find(|(_, known)| *known == mask) {
            return f.write_str(name);
        }
        let single = RIGHTS.iter().filter(|(_, bits)| bits.is_power_of_two());
        let named: Vec<_> = single.filter(|(_, bit)| mask & bit != 0).collect();
        let all = named.iter().fold(0, |all, (_, bit)| all | bit);
        if all != mask || mask == 0 || mask.count_ones() > MOST_NAMES {
            return write!(f, "0x{mask:x}");
        }
        named.iter().try_for_each(|(name, _)| f.write_str(name))
    }
}

impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (authority, parts) = self.numbers();
        let alias = ALIASES
            .iter()
            .find(|(_, known, numbers)| (*known, *numbers) == (authority, parts));
        if let Some((name, ..)) = alias {
            return f.write_str(name);
        }
        f.write_str(&self.in_numbers())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DIRECTORY_SDDL, DescriptorLayout, FILE_SDDL};
    use super::*;

    #[test]
    fn a_text_is_written_as_it_was_read() {
        for text in [
            DIRECTORY_SDDL,
            FILE_SDDL,
            "O:BAG:SYD:PARAI(A;CIID;KR;;;BU)(D;OICIIOID;GXGR;;;S-1-5-80-956008885)S:AI(ML;;0x1;;;S-1-16-4096)",
            "O:SYD:NO_ACCESS_CONTROL",
            "O:SYD:",
            "D:(A;;SDRCWD;;;WD)(A;;0x1301bf;;;CO)(A;;0x0;;;AC)",
        ] {
            let read: SecurityDescriptor = text.parse().unwrap();
            let again: SecurityDescriptor = read.to_string().parse().unwrap();
            assert_eq!(again, read, "{text}: {read}");
            let bytes = read.to_bytes(DescriptorLayout::OwnerFirst);
            let of_bytes = SecurityDescriptor::from_bytes(&bytes).unwrap();
            assert_eq!(of_bytes.to_string(), read.to_string());
        }
        let folder: SecurityDescriptor = DIRECTORY_SDDL.parse().unwrap();
        assert_eq!(folder.to_string(), DIRECTORY_SDDL);
    }

    #[test]
    fn an_entry_with_a_condition_shows_it_as_bytes() {
        let mut entry: SecurityDescriptor = "D:(A;;FR;;;BU)".parse().unwrap();
        let list = entry.dacl.as_mut().unwrap();
        list.entries[0].kind = 9;
        list.entries[0].rest = b"artx".to_vec();
        assert_eq!(entry.to_string(), "D:(0x9;;FR;;;BU;0x61727478)");
    }
}
