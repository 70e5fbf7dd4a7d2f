//! What a script of PowerShell is made of, as far as it is understood. Places are bytes of the script.

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Statement {
    Pipeline(Pipeline),
    /// `$x = …`, `$x += …`
    Assign {
        to: Expression,
        operator: char,
        value: Box<Statement>,
        at: usize,
    },
    If {
        clauses: Vec<(Statement, Vec<Statement>)>,
        otherwise: Vec<Statement>,
        at: usize,
    },
    ForEach {
        variable: String,
        items: Box<Statement>,
        body: Vec<Statement>,
        at: usize,
    },
    /// `while`, `do … while` and `do … until`
    Loop {
        test: Box<Statement>,
        /// True if it goes on while the test holds; otherwise until it does.
        goes_on_if: bool,
        /// True if the body comes first.
        tests_last: bool,
        body: Vec<Statement>,
        at: usize,
    },
    Try {
        body: Vec<Statement>,
        /// The block for any error; `None` where blocks are for some errors only.
        catch: Option<Vec<Statement>>,
        is_choosy: bool,
        finally: Vec<Statement>,
    },
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

/// What ends a block before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlFlow {
    Break,
    Continue,
    Return,
}

/// Elements with `|` between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pipeline {
    pub(super) elements: Vec<Element>,
    pub(super) at: usize,
}

/// A part of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Element {
    Expression(Expression),
    Command(CommandAst),
}

/// A command and what it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandAst {
    pub(super) name: Expression,
    pub(super) arguments: Vec<Argument>,
    pub(super) redirects: Vec<Redirect>,
    pub(super) at: usize,
}

/// Something that a command is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Argument {
    /// `-Name` or `-Name:value`; and how the name is written.
    Parameter {
        name: String,
        value: Option<Expression>,
        written: String,
    },
    Value(Expression),
    /// `@name`
    Splat(String),
}

/// Where a stream goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Redirect {
    /// Into a file; `*` is stream 0.
    File {
        stream: u8,
        append: bool,
        file: Expression,
    },
    /// Into standard output.
    Merge,
}

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    /// A text without anything to fill in.
    Text(String),
    /// A word without quotes, which may be a number too.
    Word(String),
    Number(i64),
    /// A text with things to fill in.
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
    Member {
        of: Box<Expression>,
        name: String,
        is_static: bool,
    },
    Call {
        of: Box<Expression>,
        name: String,
        is_static: bool,
        arguments: Vec<Expression>,
    },
    Index(Box<Expression>, Box<Expression>),
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StringPart {
    Text(String),
    Variable(String),
    Script(Vec<Statement>),
}
