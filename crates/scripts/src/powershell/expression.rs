//! Parser of expressions: operators by precedence, members, calls and literals.

use wincimg_windows::quoting::powershell::is_single_quote;

use super::super::error::Result;
use super::ast::{Expression, MemberAst};
use super::has_word;
use super::parse::{CHAIN, Parser, is_name, is_quote};
use super::words::from_part;

/// Comparison operators, which have the same precedence.
const COMPARISONS: &str = "
    eq ne gt ge lt le ieq ine ceq cne like notlike ilike match notmatch imatch contains
    notcontains in notin replace ireplace creplace split join is isnot as clike cmatch bor band
    bxor
";

const LOGICAL: &str = "and or xor";

/// What has to follow an expression.
const END: &str = "the end of a statement";

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Result<Expression> {
        self.deeper(|parser| parser.binary(0))
    }

    /// Parses binary operators of a precedence level, lowest first.
    fn binary(&mut self, level: usize) -> Result<Expression> {
        if level == 6 {
            return self.list();
        }
        let mut left = self.binary(level + 1)?;
        for _ in 0..CHAIN {
            let before = self.at;
            self.skip_blanks()?;
            let Some(operator) = self.operator(level) else {
                self.at = before;
                return Ok(left);
            };
            self.skip_lines()?;
            let right = self.binary(level + 1)?;
            left = Expression::Binary(operator, Box::new(left), Box::new(right));
        }
        Err(self.error("too many consecutive operators"))
    }

    fn operator(&mut self, level: usize) -> Option<String> {
        let rest = self.rest();
        let word = self.dash_word();
        let mut signs = rest.chars();
        let (first, second) = (signs.next(), signs.next());
        let sign = |known: &str| {
            first.filter(|c| known.contains(*c) && second != Some('=') && second != Some(*c))
        };
        let (found, length) = match level {
            0 if has_word(LOGICAL, &word) => (word.clone(), word.len() + 1),
            1 if !word.is_empty() && !has_word(LOGICAL, &word) => {
                if !has_word(COMPARISONS, &word) {
                    self.refuse(self.expected(END));
                }
                (word.clone(), word.len() + 1)
            }
            2 => {
                let c = sign("+-").filter(|c| *c != '-' || word.is_empty())?;
                (c.to_string(), 1)
            }
            3 => (sign("*/%")?.to_string(), 1),
            4 if word == "f" => (word.clone(), 2),
            5 if rest.starts_with("..") => ("..".to_owned(), 2),
            _ => return None,
        };
        self.at += length;
        Some(found)
    }

    fn list(&mut self) -> Result<Expression> {
        if self.peek() == Some(',') {
            self.next();
            self.skip_lines()?;
            return Ok(Expression::List(vec![self.unary()?]));
        }
        if self.is_argument {
            return self.unary();
        }
        self.comma_separated(Self::unary)
    }

    /// Parses comma-separated elements; a single one stays as it is.
    pub(super) fn comma_separated(
        &mut self,
        item: fn(&mut Self) -> Result<Expression>,
    ) -> Result<Expression> {
        let mut items = vec![item(self)?];
        loop {
            let before = self.at;
            self.skip_blanks()?;
            if self.peek() != Some(',') {
                self.at = before;
                break;
            }
            self.next();
            self.skip_lines()?;
            items.push(item(self)?);
        }
        Ok(if items.len() == 1 {
            items.remove(0)
        } else {
            Expression::List(items)
        })
    }

    /// `++` or `--` at this position.
    fn step(&self) -> Option<&'static str> {
        let mut signs = ["++", "--"].into_iter();
        signs.find(|sign| self.rest().starts_with(*sign))
    }

    fn unary(&mut self) -> Result<Expression> {
        self.skip_blanks()?;
        let added = self.step().or((self.peek() == Some('+')).then_some("+"));
        if let Some(sign) = added {
            self.refuse(self.expected("a value"));
            self.at += sign.len();
            let operand = self.deeper(Self::unary)?;
            return Ok(Expression::Other(sign.to_owned(), vec![operand]));
        }
        let word = self.dash_word();
        let operator = match (self.peek(), word.as_str()) {
            (Some('!'), _) => ("not", 1),
            (Some('-'), "not") => ("not", 4),
            (Some('-'), "bnot") => ("bnot", 5),
            (Some('-'), "join") => ("join", 5),
            (Some('-'), "split") => ("split", 6),
            (Some('-'), "") => ("-", 1),
            _ => return self.postfix(),
        };
        self.at += operator.1;
        self.skip_lines()?;
        let operand = self.deeper(Self::unary)?;
        Ok(Expression::Unary(operator.0.to_owned(), Box::new(operand)))
    }

    fn postfix(&mut self) -> Result<Expression> {
        let value = self.primary()?;
        if let Some(sign) = self.step() {
            self.refuse(self.expected(END));
            self.at += sign.len();
            return Ok(Expression::Other(format!("x{sign}"), vec![value]));
        }
        if let Expression::Type(name) = &value
            && !self.rest().starts_with("::")
        {
            let name = name.clone();
            let before = self.at;
            self.skip_blanks()?;
            // [type] before a value is a cast.
            if self
                .peek()
                .is_some_and(|c| "$(['\"@".contains(c) || c.is_ascii_digit())
            {
                let operand = self.deeper(Self::unary)?;
                return Ok(Expression::Cast(name, Box::new(operand)));
            }
            self.at = before;
        }
        Ok(value)
    }

    /// Parses a value with its members.
    pub(super) fn primary(&mut self) -> Result<Expression> {
        let value = self.value()?;
        self.members(value)
    }

    pub(super) fn members(&mut self, mut value: Expression) -> Result<Expression> {
        for _ in 0..CHAIN {
            let is_static = self.rest().starts_with("::");
            let is_member = is_static
                || (self.peek() == Some('.')
                    && self
                        .second()
                        .is_some_and(|c| is_name(c) || is_quote(c) || "$(".contains(c)));
            if is_member {
                self.at += if is_static { 2 } else { 1 };
                value = self.member(value, is_static)?;
            } else if self.peek() == Some('[') && !matches!(value, Expression::Type(_)) {
                self.next();
                self.skip_lines()?;
                let is_argument = std::mem::replace(&mut self.is_argument, false);
                let index = self.expression()?;
                self.is_argument = is_argument;
                self.skip_lines()?;
                self.require("]")?;
                value = Expression::Index(Box::new(value), Box::new(index));
            } else {
                return Ok(value);
            }
        }
        Err(self.error("too many consecutive members"))
    }

    /// Parses the name of a member, and the arguments of a call.
    fn member(&mut self, of: Expression, is_static: bool) -> Result<Expression> {
        let name = match self.peek() {
            Some(c) if is_quote(c) => self.string()?,
            Some('$' | '(') => self.value()?,
            _ => Expression::Text(self.take_while(is_name).to_owned()),
        };
        match name {
            Expression::Text(name) if !name.is_empty() => {
                let member = MemberAst {
                    of: Box::new(of),
                    name: name.to_lowercase(),
                    is_static,
                };
                Ok(if self.eat("(") {
                    Expression::Call(member, self.call_arguments()?)
                } else {
                    Expression::Member(member)
                })
            }
            Expression::Text(_) => Err(self.error("unsupported member name")),
            name => {
                self.refuse(self.error("unsupported member name"));
                let mut parts = vec![of, name];
                if self.eat("(") {
                    parts.extend(self.call_arguments()?);
                }
                Ok(Expression::Other(".".to_owned(), parts))
            }
        }
    }

    fn call_arguments(&mut self) -> Result<Vec<Expression>> {
        let is_argument = std::mem::replace(&mut self.is_argument, true);
        let mut arguments = Vec::new();
        self.skip_lines()?;
        while !self.eat(")") {
            if !arguments.is_empty() && !self.eat(",") {
                return Err(self.expected("a )"));
            }
            self.skip_lines()?;
            arguments.push(self.expression()?);
            self.skip_lines()?;
        }
        self.is_argument = is_argument;
        Ok(arguments)
    }

    fn value(&mut self) -> Result<Expression> {
        let Some(c) = self.peek() else {
            return Err(self.expected("a value"));
        };
        match c {
            '(' => {
                self.next();
                self.skip_lines()?;
                let statement = self.deeper(Self::statement)?;
                self.skip_lines()?;
                self.require(")")?;
                Ok(Expression::Group(Box::new(statement)))
            }
            '$' => self.variable()?.map_or_else(
                || Err(self.error("$ is not supported here")),
                |piece| Ok(from_part(piece)),
            ),
            '@' => self.at_sign(),
            '{' => self.script_block(),
            '[' => self.type_name(),
            c if c.is_ascii_digit() => Ok(self.number()),
            c if is_quote(c) => self.string(),
            _ => Err(self.expected("a value")),
        }
    }

    fn number(&mut self) -> Expression {
        let start = self.at;
        let digits = if self.rest().starts_with("0x") {
            self.at += 2;
            let digits = self.take_while(|c| c.is_ascii_hexdigit());
            i64::from_str_radix(digits, 16)
        } else {
            self.take_while(|c| c.is_ascii_digit()).parse()
        };
        match digits {
            Ok(number) if !self.continues_number() => Expression::Number(number),
            _ => {
                self.refuse(self.error("unsupported number"));
                while self.continues_number() {
                    self.next();
                }
                Expression::Other(self.text[start..self.at].to_owned(), Vec::new())
            }
        }
    }

    /// Returns true before a unit such as `MB`, or a fraction.
    fn continues_number(&self) -> bool {
        self.peek().is_some_and(|c| {
            is_name(c) || (c == '.' && self.second().is_some_and(|c| c.is_ascii_digit()))
        })
    }

    /// Parses `[name]`, or an attribute with its arguments.
    pub(super) fn type_name(&mut self) -> Result<Expression> {
        let mut depth = 0_usize;
        let end = self.rest().find(|c: char| {
            depth = match c {
                '[' => depth + 1,
                ']' => depth - 1,
                _ => depth,
            };
            depth == 0
        });
        let Some(end) = end else {
            return Err(self.error("unclosed ["));
        };
        let name = self.rest()[1..end].trim().to_lowercase();
        self.at += end + 1;
        let is_type = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '[' | ']'));
        if !is_type {
            self.refuse(self.error(format!("unsupported type [{name}]")));
        }
        let name = name.strip_prefix("system.").unwrap_or(&name).to_owned();
        Ok(Expression::Type(name))
    }

    fn at_sign(&mut self) -> Result<Expression> {
        match self.second() {
            Some('(') => {
                self.at += 2;
                let statements = self.statements(Some(')'))?;
                self.next();
                Ok(Expression::Array(statements))
            }
            Some('{') => {
                self.at += 2;
                self.table()
            }
            Some(c) if is_quote(c) => self.here_string(is_single_quote(c)),
            _ => Err(self.error("@ is not supported here")),
        }
    }

    fn table(&mut self) -> Result<Expression> {
        let mut entries = Vec::new();
        self.parts_up_to("}", &[";"], |parser| {
            let key = match parser.peek() {
                Some(c) if is_quote(c) => parser.string()?,
                Some(c) if is_name(c) => Expression::Text(parser.take_while(is_name).to_owned()),
                Some('$' | '(') => {
                    parser.refuse(parser.expected("a name"));
                    parser.primary()?
                }
                _ => return Err(parser.expected("a name")),
            };
            parser.skip_lines()?;
            parser.require("=")?;
            parser.skip_lines()?;
            entries.push((key, parser.deeper(Self::statement)?));
            Ok(())
        })?;
        Ok(Expression::Table(entries))
    }
}
