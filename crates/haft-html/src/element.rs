//! What elements mean here: a table of names, and what follows from each.

/// The elements that make a difference. All others are [`Kind::Other`]: they hold text and may be hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Any element that only holds others: div, section, form.
    Block,
    Body,
    Main,
    Article,
    Nav,
    Aside,
    Footer,
    Header,
    Form,
    Paragraph,
    Heading,
    List,
    Ordered,
    Item,
    Definitions,
    Term,
    Meaning,
    Quote,
    Pre,
    Table,
    Rows,
    Row,
    Cell,
    Caption,
    Choice,
    Button,
    /// A dialog that is shown only when it is open.
    Dialog,
    Link,
    Code,
    /// Text that no longer holds.
    Deleted,
    /// The same by an element that a browser opens again.
    Struck,
    Superscript,
    Subscript,
    Quotation,
    /// How the characters before it are read.
    Reading,
    /// Elements that a browser opens again after whatever closed them by mistake.
    Format,
    Title,
    /// What is never text of the page.
    Dropped,
    Drawing,
    Break,
    Rule,
    Image,
    Base,
    /// Elements without content that say nothing here.
    Void,
    Other,
}

/// How many kinds there are.
pub(crate) const KINDS: usize = Kind::Other as usize + 1;

/// The kind of an element, by its name in lower case.
pub(crate) fn kind(name: &[u8]) -> Kind {
    match name {
        b"div" | b"section" | b"fieldset" | b"figure" | b"figcaption" | b"address" | b"center" | b"hgroup"
        | b"details" | b"summary" | b"search" | b"legend" | b"html" | b"dir" | b"noframes" | b"select" => Kind::Block,
        b"body" => Kind::Body,
        b"main" => Kind::Main,
        b"article" => Kind::Article,
        b"nav" => Kind::Nav,
        b"aside" => Kind::Aside,
        b"footer" => Kind::Footer,
        b"header" => Kind::Header,
        b"form" => Kind::Form,
        b"p" => Kind::Paragraph,
        b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => Kind::Heading,
        b"ul" | b"menu" => Kind::List,
        b"ol" => Kind::Ordered,
        b"li" => Kind::Item,
        b"dl" => Kind::Definitions,
        b"dt" => Kind::Term,
        b"dd" => Kind::Meaning,
        b"blockquote" => Kind::Quote,
        b"pre" | b"listing" | b"xmp" | b"plaintext" => Kind::Pre,
        b"table" => Kind::Table,
        b"thead" | b"tbody" | b"tfoot" => Kind::Rows,
        b"tr" => Kind::Row,
        b"td" | b"th" => Kind::Cell,
        b"caption" => Kind::Caption,
        b"option" | b"optgroup" => Kind::Choice,
        b"button" => Kind::Button,
        b"dialog" => Kind::Dialog,
        b"a" => Kind::Link,
        b"code" | b"kbd" | b"samp" | b"tt" => Kind::Code,
        b"b" | b"strong" | b"i" | b"em" | b"u" | b"small" | b"big" | b"font" | b"nobr" => Kind::Format,
        b"s" | b"strike" => Kind::Struck,
        b"del" => Kind::Deleted,
        b"sup" => Kind::Superscript,
        b"sub" => Kind::Subscript,
        b"q" => Kind::Quotation,
        b"rt" => Kind::Reading,
        b"title" => Kind::Title,
        b"script" | b"style" | b"noscript" | b"template" | b"iframe" | b"object" | b"noembed" | b"canvas"
        | b"audio" | b"video" | b"datalist" => Kind::Dropped,
        b"svg" | b"math" => Kind::Drawing,
        b"br" => Kind::Break,
        b"hr" => Kind::Rule,
        b"img" | b"image" => Kind::Image,
        b"base" => Kind::Base,
        b"meta" | b"link" | b"input" | b"wbr" | b"col" | b"area" | b"embed" | b"source" | b"track" | b"param"
        | b"keygen" | b"frame" | b"basefont" | b"bgsound" => Kind::Void,
        _ => Kind::Other,
    }
}

impl Kind {
    /// Whether it has a place of its own in the page's outline, and so can be what the page is about.
    pub(crate) fn is_zone(self) -> bool {
        matches!(
            self,
            Self::Block
                | Self::Body
                | Self::Main
                | Self::Article
                | Self::Nav
                | Self::Aside
                | Self::Footer
                | Self::Header
                | Self::Form
                | Self::List
                | Self::Ordered
                | Self::Definitions
                | Self::Table
                | Self::Cell
        )
    }

    /// Whether it stands within a line of text. An end tag of such an element does not reach over others.
    pub(crate) fn is_inline(self) -> bool {
        matches!(
            self,
            Self::Link
                | Self::Code
                | Self::Deleted
                | Self::Struck
                | Self::Superscript
                | Self::Subscript
                | Self::Quotation
                | Self::Reading
                | Self::Format
                | Self::Other
                | Self::Button
                | Self::Title
        )
    }

    /// Whether a browser opens it again after whatever closed it by mistake.
    pub(crate) fn is_formatting(self) -> bool {
        matches!(self, Self::Format | Self::Struck | Self::Code | Self::Link)
    }

    /// Whether it belongs to the inside of a table.
    pub(crate) fn is_of_table(self) -> bool {
        matches!(self, Self::Table | Self::Rows | Self::Row | Self::Cell | Self::Caption)
    }

    /// Whether opening it ends an open paragraph.
    pub(crate) fn ends_paragraph(self) -> bool {
        !self.is_inline()
            && !matches!(
                self,
                Self::Choice | Self::Dropped | Self::Drawing | Self::Break | Self::Image | Self::Base | Self::Void
            )
    }

    /// Whether it never has content.
    pub(crate) fn is_void(self) -> bool {
        matches!(self, Self::Break | Self::Rule | Self::Image | Self::Base | Self::Void)
    }

    /// Whether it ends a drawing that nobody closed.
    pub(crate) fn ends_drawing(self) -> bool {
        self.ends_paragraph()
            || matches!(
                self,
                Self::Code
                    | Self::Format
                    | Self::Struck
                    | Self::Superscript
                    | Self::Subscript
                    | Self::Break
                    | Self::Image
            )
    }
}
