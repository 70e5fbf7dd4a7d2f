//! Which log files are meant: `C:\logs\app.log`, `C:\logs\*.log`, `C:\logs\**\*.log`.

use alloc::vec::Vec;

const STAR: u16 = b'*' as u16;
const ANY: u16 = b'?' as u16;
const BACKSLASH: u16 = b'\\' as u16;

/// The files of one pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFiles {
    /// A path whose last parts may have `*` and `?`; a part `**` is any number of folders.
    pub pattern: Vec<u16>,
    /// Whether each line begins with the name of its file.
    pub named: bool,
}

/// Whether a text looks like a path: it names a folder.
pub fn is_path(text: &[u16]) -> bool {
    text.iter().any(|&unit| is_separator(unit))
}

/// The parts of a path.
pub fn parts(path: &[u16]) -> Vec<&[u16]> {
    path.split(|&unit| is_separator(unit)).collect()
}

fn is_separator(unit: u16) -> bool {
    unit == BACKSLASH || unit == u16::from(b'/')
}

/// Whether a part of a pattern stands for any number of folders.
pub fn is_any_depth(part: &[u16]) -> bool {
    part == [STAR, STAR]
}

/// Whether a part of a pattern is more than a name.
pub fn is_wild(part: &[u16]) -> bool {
    part.contains(&STAR) || part.contains(&ANY)
}

/// Whether a part of a pattern fits a name; case is ignored in ASCII.
pub fn fits(part: &[u16], name: &[u16]) -> bool {
    let (mut at, mut name_at) = (0, 0);
    // Where to go on if what follows the last star does not fit.
    let mut retry = None;
    while name_at < name.len() {
        match part.get(at) {
            Some(&STAR) => {
                retry = Some((at + 1, name_at + 1));
                at += 1;
            }
            Some(&unit) if unit == ANY || lower(unit) == lower(name[name_at]) => {
                at += 1;
                name_at += 1;
            }
            _ => match retry {
                Some((after_star, next)) => {
                    (at, name_at) = (after_star, next);
                    retry = Some((after_star, next + 1));
                }
                None => return false,
            },
        }
    }
    part[at..].iter().all(|&unit| unit == STAR)
}

/// Whether a text is a word in ASCII, in any case.
pub fn is_same(text: &[u16], word: &str) -> bool {
    let units = text.iter().map(|&unit| lower(unit));
    units.eq(word.bytes().map(|byte| lower(byte.into())))
}

fn lower(unit: u16) -> u16 {
    let is_upper = (u16::from(b'A')..=u16::from(b'Z')).contains(&unit);
    unit | u16::from(is_upper) << 5
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    #[test]
    fn stars_and_question_marks_fit_names() {
        let fits = |part: &str, name: &str| fits(&wide(part), &wide(name));
        for (part, name) in [
            ("*", ""),
            ("*", "a.log"),
            ("*.log", "A.LOG"),
            ("*.log", ".log"),
            ("u_ex??.log", "u_ex26.log"),
            ("a*b*c", "a-b-b-c"),
            ("*a", "aaa"),
            ("app.log*", "app.log.1"),
            ("é*", "éa"),
        ] {
            assert!(fits(part, name), "{part} {name}");
        }
        for (part, name) in [
            ("", "a"),
            ("*.log", "a.log1"),
            ("*.log", "alog"),
            ("?", ""),
            ("a?", "a"),
            ("a*b*c", "a-c-b"),
        ] {
            assert!(!fits(part, name), "{part} {name}");
        }
    }

    #[test]
    fn a_path_names_a_folder() {
        assert!(is_path(&wide(r"C:\app.log")));
        assert!(is_path(&wide("./app.log")));
        assert!(!is_path(&wide("json")));
    }
}
