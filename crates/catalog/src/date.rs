//! Dates in the spellings of the catalog and of Microsoft's pages.

use jiff::civil::Date;

/// Reads `9/11/2018`, `2018-09-11`, `11.09.2018`, `September 11, 2018` and `11 Sep 2018`; `None`
/// for everything else.
pub(super) fn read_date(text: &str) -> Option<Date> {
    let parts: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|part| !part.is_empty())
        .collect();
    let [first, second, third] = parts.get(..3)?.try_into().ok()?;
    // A time of day may follow.
    if parts.len() > 3 && !parts[3].starts_with(|c: char| c.is_ascii_digit() || c == 'T') {
        return None;
    }
    if let Some(month) = month_by_name(first) {
        return date(third, month, second);
    }
    if let Some(month) = month_by_name(second) {
        return date(third, month, first);
    }
    if first.len() == 4 {
        // In 2018-09-11T00:00:00Z the time follows the day without a space.
        let day = third.split('T').next()?;
        return date(first, number(second)?, day);
    }
    let day_first = text.contains('.') || number(first)? > 12;
    if day_first {
        date(third, number(second)?, first)
    } else {
        date(third, number(first)?, second)
    }
}

fn date(year: &str, month: i8, day: &str) -> Option<Date> {
    if year.len() != 4 {
        return None;
    }
    Date::new(year.parse().ok()?, month, number(day)?).ok()
}

fn number(text: &str) -> Option<i8> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

fn month_by_name(text: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = [
        "january", "february", "march", "april", "may", "june", "july", "august", "september",
        "october", "november", "december",
    ];
    let text = text.to_ascii_lowercase();
    let index = MONTHS
        .iter()
        .position(|month| text.len() >= 3 && month.starts_with(&text))?;
    i8::try_from(index + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_spelling_is_the_same_day() {
        let expected = Some(jiff::civil::date(2018, 9, 11));
        for text in [
            "9/11/2018", "09/11/2018", "2018-09-11", "2018/9/11", "2018-09-11T00:00:00Z",
            "11.09.2018", "September 11, 2018", "Sep 11, 2018", "11 Sep 2018", "11-Sep-2018",
            "9/11/2018 12:00:00 AM",
        ] {
            assert_eq!(read_date(text), expected, "{text}");
        }
        assert_eq!(read_date("25/9/2018"), Some(jiff::civil::date(2018, 9, 25)));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "", "n/a", "9/11", "13/13/2018", "2018-02-30", "9/11/18", "a/b/c", "1/2/2018/x",
        ] {
            assert_eq!(read_date(text), None, "{text}");
        }
    }
}
