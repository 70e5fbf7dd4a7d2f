//! Syntax tree of PowerShell. Positions are byte offsets in the script.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Statement {
    Pipeline(Pipeline),
    Assign(Assignment),
    If {
        clauses: Vec<(Test, Vec<Statement>)>,
        otherwise: Vec<Statement>,
        at: usize,
    },
    ForEach(ForEach),
    Loop(Loop),
    Try(Try),
    Function {
        name: String,
        parameters: Vec<(String, Option<Expression>)>,
        body: Vec<Statement>,
    },
    /// `break`, `continue` and `return`
    Flow {
        flow: ControlFlow,
        value: Option<Box<Statement>>,
    },
    Throw {
        at: usize,
    },
    Exit {
        code: Option<Expression>,
        at: usize,
    },
}

impl Statement {
    /// A statement that is only an expression.
    pub(super) fn of(expression: Expression, at: usize) -> Self {
        Self::Pipeline(Pipeline {
            elements: vec![Element::Expression(expression)],
            at,
        })
    }

    /// The only element, if the statement is a pipeline of one.
    pub(super) fn only_element(&self) -> Option<&Element> {
        match self {
            Self::Pipeline(pipeline) if pipeline.elements.len() == 1 => pipeline.elements.first(),
            _ => None,
        }
    }

    /// The command, if the statement is nothing else.
    pub(super) fn only_command(&self) -> Option<&CommandAst> {
        match self.only_element()? {
            Element::Command(command) => Some(command),
            Element::Expression(_) => None,
        }
    }
}

/// `$x = …`, `$x += …`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) to: Expression,
    pub(super) operator: char,
    pub(super) value: Box<Statement>,
    pub(super) at: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ForEach {
    pub(super) variable: String,
    pub(super) items: Box<Statement>,
    pub(super) body: Vec<Statement>,
    pub(super) at: usize,
}

/// Condition of an `if` or a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) statement: Statement,
    /// True if a part of it is a command, whether it runs or not. Commands in script blocks do not
    /// count.
    pub(super) has_command: bool,
}

/// `while`, `do … while` and `do … until`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Loop {
    pub(super) test: Box<Test>,
    /// True for `while`, false for `until`.
    pub(super) continues_if: bool,
    /// True if the body runs before the test.
    pub(super) tests_last: bool,
    pub(super) body: Vec<Statement>,
    pub(super) at: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Try {
    pub(super) body: Vec<Statement>,
    pub(super) catches: Vec<Vec<Statement>>,
    /// True if a block is only for specific errors.
    pub(super) has_typed_catch: bool,
    pub(super) finally: Vec<Statement>,
}

/// Parameter of a script file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScriptParameter {
    /// Name in lower case.
    pub(super) name: String,
    /// Type in lower case.
    pub(super) kind: Option<String>,
    pub(super) is_mandatory: bool,
    pub(super) default: Option<Expression>,
}

/// Statement that leaves a block early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlFlow {
    Break,
    Continue,
    Return,
}

/// Elements separated by `|`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pipeline {
    pub(super) elements: Vec<Element>,
    pub(super) at: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Element {
    Expression(Expression),
    Command(CommandAst),
}

/// Command with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandAst {
    /// True after the dot that runs a script file in the current scope.
    pub(super) is_dotted: bool,
    pub(super) name: Expression,
    pub(super) arguments: Vec<Argument>,
    pub(super) redirects: Vec<Redirect>,
    pub(super) at: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Argument {
    /// `-Name` or `-Name:value`, with what is written before the value: the colon, too, and a space.
    Parameter {
        name: String,
        value: Option<Expression>,
        written: String,
    },
    Value(Expression),
    /// `@name`
    Splat(String),
}

impl Argument {
    pub(super) fn value(&self) -> Option<&Expression> {
        match self {
            Self::Value(value) => Some(value),
            Self::Parameter { value, .. } => value.as_ref(),
            Self::Splat(_) => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Redirect {
    /// To a file; `*` is stream 0.
    File {
        stream: u8,
        append: bool,
        file: Expression,
    },
    /// To standard output.
    Merge,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    /// String without variables.
    Text(String),
    /// Word without quotes, which may be a number.
    Word(String),
    Number(i64),
    /// String with variables or scripts.
    Filled(Vec<StringPart>),
    Variable(String),
    List(Vec<Expression>),
    /// `( … )`
    Group(Box<Statement>),
    /// `$( … )`
    Script(Vec<Statement>),
    /// `@( … )`
    Array(Vec<Statement>),
    /// `@{ … }`
    Table(Vec<(Expression, Statement)>),
    /// `{ … }`
    Block(Vec<Statement>),
    /// `[name]`
    Type(String),
    Cast(String, Box<Expression>),
    Unary(String, Box<Expression>),
    Binary(String, Box<Expression>, Box<Expression>),
    Member(MemberAst),
    /// Call of a method with its arguments.
    Call(MemberAst, Vec<Expression>),
    Index(Box<Expression>, Box<Expression>),
    /// Keyword or operator that the interpreter does not run, such as `for`, with its parts.
    Other(String, Vec<Expression>),
}

/// Member of a value, or of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MemberAst {
    pub(super) of: Box<Expression>,
    pub(super) name: String,
    pub(super) is_static: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StringPart {
    Text(String),
    Variable(String),
    Script(Vec<Statement>),
}
