//! What is measured: the samplers by name, and the check of their results.

use sortless::mirostat::{Config, Session, Step, Version};
use sortless::{
    Element, Error, Level, Report, Sampler, SamplingParams, Scratch, floors, reference,
};

/// Mirostat's target in bits.
const TAU: f64 = 3.0;

/// Steps of a session before the next one begins, as with a new text: `mu` is where it settles for most of them, and
/// where the rows leave the target out of reach it doesn't run away.
const TEXT: u64 = 256;

/// A sampler, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name on the command line and in tables.
    pub name: &'static str,
    /// Its parameters.
    pub params: SamplingParams,
    /// What is run with them.
    pub what: What,
}

/// What a case runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A light pick.
    Pick,
    /// A pick with everything reported, and 10 alternatives.
    Report,
    /// The maximum and the exact total mass alone.
    Mass,
    /// A Mirostat step: sessions go from row to row, one after the other.
    Step(Version),
}

/// Every case, in the order of the tables.
pub fn cases() -> Vec<Case> {
    let at = |t| SamplingParams::new().with_temperature(t);
    let pick = |name, params| Case { name, params, what: What::Pick };
    let step = |name, version| Case { name, params: at(1.0), what: What::Step(version) };
    let nucleus = at(0.7).with_top_p(0.9);
    vec![
        pick("greedy", at(0.0)),
        pick("top-k 50", at(1.0).with_top_k(50)),
        pick("T 0.8, top-k 40, top-p 0.95", at(0.8).with_top_k(40).with_top_p(0.95)),
        pick("min-p 0.05", at(1.0).with_min_p(0.05)),
        pick("top-p 0.9 at T 0.7", nucleus),
        pick("draw at T 0.8", at(0.8)),
        pick("top-p 1.0", at(1.0).with_top_p(1.0)),
        pick("typical 0.95", at(1.0).with_typical_p(0.95)),
        pick("epsilon 3e-4", at(1.0).with_epsilon(3e-4)),
        step("mirostat v1, tau 3", Version::V1),
        step("mirostat v2, tau 3", Version::V2),
        Case { name: "exact pass alone (T 0.7)", params: at(0.7), what: What::Mass },
        Case { name: "report, top-p 0.9 at T 0.7", params: nucleus, what: What::Report },
    ]
}

/// The session that a case begins with; of no use to a case that takes no steps.
pub fn session(case: Case, level: Level) -> Session {
    let version = if let What::Step(version) = case.what { version } else { Version::V2 };
    let config = Config::new(TAU).expect("in range");
    Session::new(config, version).with_level(level)
}

/// The next step of a session, or of the one that comes after it.
pub fn step<E: Element>(
    session: &mut Session,
    row: &[E],
    u: f64,
    scratch: &mut Scratch,
) -> Result<Step, Error> {
    renew(session);
    session.sample(row, u, scratch)
}

/// Begins anew where a text is at its end.
pub fn renew(session: &mut Session) {
    if session.steps() == TEXT {
        session.reset();
    }
}

/// Panics unless this is the reference's step on this row.
pub fn check_step<E: Element>(step: Result<Step, Error>, version: Version, row: &[E], u: f64) {
    let step = step.expect("the rows and draws are good");
    let (mu, m) = (step.mu_before, 100);
    let want = match version {
        Version::V1 => reference::mirostat_v1(row, 1.0, mu, m, u),
        Version::V2 => reference::mirostat_v2(row, 1.0, mu, u),
    };
    let got = (step.token, step.kept, step.probability, step.surprise);
    let want = want.map(|p| (p.token, p.kept, p.probability, p.surprise));
    assert_eq!(Ok(got), want, "{version:?} at {u}, mu {mu}");
}

/// A case that runs again and again.
#[derive(Debug)]
pub struct Runner {
    /// What is run.
    pub case: Case,
    /// The sampler on the level that is measured.
    pub sampler: Sampler,
    /// Its memory; also counts which paths decided.
    pub scratch: Scratch,
    session: Session,
    report: Report,
}

impl Runner {
    /// A case on a level.
    pub fn new(case: Case, level: Level) -> Self {
        let sampler = Sampler::new(case.params).expect("the cases are in range");
        Self {
            case,
            sampler: sampler.with_level(level),
            scratch: Scratch::new(),
            session: session(case, level),
            report: Report::default(),
        }
    }

    /// One call. What it returns only keeps the work alive.
    #[inline]
    pub fn call<E: Element>(&mut self, row: &[E], u: f64) -> u64 {
        match self.case.what {
            What::Pick => {
                let pick = self.sampler.sample(row, u, &mut self.scratch);
                pick.map_or(0, |p| u64::from(p.token))
            }
            What::Report => {
                let Self { sampler, scratch, report, .. } = self;
                let done = sampler.report(row, u, 10, scratch, report);
                done.map_or(0, |()| u64::from(report.kept))
            }
            What::Mass => floors::exact(self.sampler.level(), row, self.case.params.temperature),
            What::Step(_) => {
                let step = step(&mut self.session, row, u, &mut self.scratch);
                step.map_or(0, |s| u64::from(s.token))
            }
        }
    }

    /// Panics unless the result on this row is the reference's.
    pub fn check<E: Element>(&mut self, row: &[E], u: f64) {
        let name = self.case.name;
        let params = &self.case.params;
        match self.case.what {
            What::Pick => {
                let pick = self.sampler.sample(row, u, &mut self.scratch);
                assert_eq!(pick, reference::sample(row, params, u), "{name} at {u}");
            }
            What::Report => {
                let Self { sampler, scratch, report, .. } = self;
                let done = sampler.report(row, u, 10, scratch, report);
                let want = reference::report(row, params, u, 10);
                assert_eq!(done.map(|()| &*report), want.as_ref().map_err(Clone::clone), "{name}");
            }
            What::Mass => {
                let max = reference::max(row).expect("the rows are finite");
                let mass = reference::total_mass(row, max, params.temperature);
                assert_eq!(self.call(row, u), mass, "{name}");
            }
            What::Step(version) => {
                let step = step(&mut self.session, row, u, &mut self.scratch);
                check_step(step, version, row, u);
            }
        }
    }
}

/// The n-th draw of a row: a sequence that fills [0, 1) evenly.
pub fn draw(row: usize, n: usize) -> f64 {
    ((row * 7919 + n) as f64 * 0.618_033_988_749_894_9).fract()
}
