//! Which ways decisions were made, for tests and benchmarks.

/// How a decision was made. Each gives the same tokens; they differ in what they read.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Path {
    /// From the head of the rank and what the block maxima say of the rest.
    #[default]
    Bounds,
    /// From the head of the rank and the cheap pass's bounds on the total.
    Cheap,
    /// From the head of the rank and the exact total.
    Exact,
    /// From the whole row: a sketch of it, and an exact pass for where that says to look.
    Full,
}

/// Counts of decisions by path; greedy ones are on none.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    start: Path,
    /// Decisions by [`Path::Bounds`].
    pub bounds: u64,
    /// Decisions by [`Path::Cheap`].
    pub cheap: u64,
    /// Decisions by [`Path::Exact`].
    pub exact: u64,
    /// Decisions by [`Path::Full`].
    pub full: u64,
}

impl Paths {
    /// The first path that may decide.
    pub(crate) fn start(&self) -> Path {
        self.start
    }

    /// From now on only paths from this one on may decide.
    pub(crate) fn start_at(&mut self, path: Path) {
        self.start = path;
    }

    /// Counts a decision.
    pub(crate) fn count(&mut self, path: Path) {
        *match path {
            Path::Bounds => &mut self.bounds,
            Path::Cheap => &mut self.cheap,
            Path::Exact => &mut self.exact,
            Path::Full => &mut self.full,
        } += 1;
    }
}
