//! The instruction sets that kernels can run on, and which of them this machine has.

use crate::error::Error;
use core::fmt;
use pulp::{Simd, WithSimd};

#[derive(Clone, Copy)]
enum Kind {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2(pulp::x86::V3),
    #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
    Avx512(pulp::x86::V4),
    #[cfg(target_arch = "aarch64")]
    Neon(pulp::aarch64::Neon),
    #[cfg(target_arch = "wasm32")]
    Simd128(pulp::wasm::Simd128),
    #[cfg(feature = "widths")]
    Width128,
    #[cfg(feature = "widths")]
    Width256,
    #[cfg(feature = "widths")]
    Width512,
}

/// An instruction set that this machine has.
///
/// Every level gives the same bits, so users have no reason to choose; the default is the best one.
/// Forcing a level is for tests, benchmarks and doubt. A `Level` that the machine lacks can't be made.
///
/// | name | needs |
/// |---|---|
/// | `avx512` | x86-64 with AVX-512 (x86-64-v4), feature `avx512` |
/// | `avx2` | x86-64 with AVX2 and FMA (x86-64-v3) |
/// | `neon` | aarch64 |
/// | `simd128` | wasm32 built with `-C target-feature=+simd128` |
/// | `scalar` | nothing |
#[derive(Clone, Copy)]
pub struct Level(Kind);

/// The name of the environment variable that [`Level::from_env`] reads.
pub const LEVEL_VARIABLE: &str = "SORTLESS_LEVEL";

impl Level {
    /// The scalar level, there on every machine.
    pub const SCALAR: Self = Self(Kind::Scalar);

    /// The levels of this machine, best first; the last is always [`Level::SCALAR`].
    pub fn available() -> impl Iterator<Item = Self> {
        let simd = [
            #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
            pulp::x86::V4::try_new().map(Kind::Avx512),
            #[cfg(target_arch = "x86_64")]
            pulp::x86::V3::try_new().map(Kind::Avx2),
            #[cfg(target_arch = "aarch64")]
            pulp::aarch64::Neon::try_new().map(Kind::Neon),
            #[cfg(target_arch = "wasm32")]
            pulp::wasm::Simd128::try_new().map(Kind::Simd128),
            Some(Kind::Scalar),
        ];
        simd.into_iter().flatten().map(Self)
    }

    /// For tests: [`Level::available`], and with the feature `widths` also vectors of 128, 256 and 512 bits in plain code,
    /// so that each width runs wherever the tests do.
    #[doc(hidden)]
    pub fn tested() -> impl Iterator<Item = Self> {
        let widths = [
            #[cfg(feature = "widths")]
            Kind::Width128,
            #[cfg(feature = "widths")]
            Kind::Width256,
            #[cfg(feature = "widths")]
            Kind::Width512,
        ];
        Self::available().chain(widths.into_iter().map(Self))
    }

    /// The best level of this machine. Detection runs once a process.
    pub fn best() -> Self {
        Self::available().next().unwrap_or(Self::SCALAR)
    }

    /// The level of this name.
    ///
    /// # Errors
    /// [`Error::Level`], which lists the available names, if there is none such here.
    pub fn by_name(name: &str) -> Result<Self, Error> {
        Self::tested().find(|level| level.name() == name).ok_or_else(|| Error::Level {
            requested: name.into(),
            available: Self::available().map(Self::name).collect::<Vec<_>>().join(", ").into(),
        })
    }

    /// The level that the environment variable `SORTLESS_LEVEL` names; `None` where it is not set or empty.
    ///
    /// The library itself never calls this: examples, tests, benchmarks and the command-line tool do.
    ///
    /// # Errors
    /// [`Error::Level`], which lists the available names, if the named level is not available.
    pub fn from_env() -> Result<Option<Self>, Error> {
        match std::env::var_os(LEVEL_VARIABLE) {
            Some(name) if !name.is_empty() => Self::by_name(&name.to_string_lossy()).map(Some),
            _ => Ok(None),
        }
    }

    /// The level's name, as in the table above.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(_) => "avx2",
            #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
            Kind::Avx512(_) => "avx512",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon(_) => "neon",
            #[cfg(target_arch = "wasm32")]
            Kind::Simd128(_) => "simd128",
            #[cfg(feature = "widths")]
            Kind::Width128 => "width128",
            #[cfg(feature = "widths")]
            Kind::Width256 => "width256",
            #[cfg(feature = "widths")]
            Kind::Width512 => "width512",
        }
    }

    /// Runs a kernel: the only place where an instruction set is entered.
    #[inline(always)]
    pub(crate) fn run<Op: WithSimd>(self, op: Op) -> Op::Output {
        match self.0 {
            Kind::Scalar => op.with_simd(pulp::Scalar),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(simd) => Simd::vectorize(simd, op),
            #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
            Kind::Avx512(simd) => Simd::vectorize(simd, op),
            #[cfg(target_arch = "aarch64")]
            Kind::Neon(simd) => Simd::vectorize(simd, op),
            #[cfg(target_arch = "wasm32")]
            Kind::Simd128(simd) => Simd::vectorize(simd, op),
            #[cfg(feature = "widths")]
            Kind::Width128 => op.with_simd(pulp::Scalar128b),
            #[cfg(feature = "widths")]
            Kind::Width256 => op.with_simd(pulp::Scalar256b),
            #[cfg(feature = "widths")]
            Kind::Width512 => op.with_simd(pulp::Scalar512b),
        }
    }
}

impl Default for Level {
    fn default() -> Self {
        Self::best()
    }
}

impl PartialEq for Level {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Level {}

impl fmt::Debug for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Level({})", self.name())
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalar_is_last_and_names_find_their_level() {
        let all: Vec<Level> = Level::available().collect();
        assert_eq!(all.last(), Some(&Level::SCALAR));
        assert_eq!(all[0], Level::best());
        for level in Level::tested() {
            assert_eq!(Level::by_name(level.name()), Ok(level));
        }
    }

    /// CI shows this test's output, so that a run says which levels its results stand for.
    #[test]
    fn prints_the_levels() {
        let names: Vec<&str> = Level::available().map(Level::name).collect();
        println!("levels on {}: {}", std::env::consts::ARCH, names.join(", "));

        #[cfg(target_arch = "aarch64")]
        assert_eq!(names, ["neon", "scalar"]);
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        assert_eq!(names, ["simd128", "scalar"]);
        #[cfg(target_arch = "x86_64")]
        assert!(names.contains(&"avx2") || !std::is_x86_feature_detected!("avx2"));
    }

    #[test]
    fn an_unknown_level_lists_the_available_ones() {
        let text = Level::by_name("mmx").unwrap_err().to_string();
        assert!(
            text.contains("mmx") && text.contains("scalar") && text.contains(Level::best().name()),
            "{text}"
        );
    }
}
