//! The loop around a model: rows in, tokens out.

use super::{Session, Step};
use crate::element::Element;
use crate::error::Error;
use crate::sampler::Scratch;
use core::fmt;
use core::ops::ControlFlow;

/// Why a generation ended. Where the end token and another reason apply at once, it was the end token; the observer comes
/// before the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Stop {
    /// As many tokens as were allowed.
    Limit,
    /// The end token was drawn; it is the last token.
    EndToken,
    /// The observer said so.
    Observer,
}

/// What a generation made.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Generated {
    /// The drawn tokens, without the prompt; an end token is among them.
    pub tokens: Vec<u32>,
    /// The steps, where they are retained; empty otherwise.
    pub steps: Vec<Step>,
    /// Why it ended.
    pub stop: Stop,
}

/// What went wrong in a generation.
#[derive(Clone, Debug, PartialEq)]
pub enum StopCause<M> {
    /// The model's own error.
    Model(M),
    /// The row or the draw was refused.
    Sample(Error),
}

/// A generation that broke off. What succeeded before it is kept, here and in the session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GenerateError<M> {
    /// The tokens drawn before the error, without the prompt.
    pub tokens: Vec<u32>,
    /// Their steps, where they are retained.
    pub steps: Vec<Step>,
    /// What went wrong.
    pub cause: StopCause<M>,
}

impl<M: fmt::Display> fmt::Display for GenerateError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} tokens: ", self.tokens.len())?;
        match &self.cause {
            StopCause::Model(error) => write!(f, "the model: {error}"),
            StopCause::Sample(error) => write!(f, "{error}"),
        }
    }
}

impl<M: std::error::Error + 'static> std::error::Error for GenerateError<M> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(match &self.cause {
            StopCause::Model(error) => error,
            StopCause::Sample(error) => error,
        })
    }
}

/// The limits of a generation, and the loop itself.
///
/// ```
/// use sortless::{Draws, Scratch};
/// use sortless::mirostat::{Config, Generate, Session, Stop, Version};
/// // A model that likes to count: after n comes n + 1.
/// let model = |text: &[u32], row: &mut Vec<f32>| -> Result<(), std::convert::Infallible> {
///     row.clear();
///     row.resize(10, 0.0);
///     row[(text.last().unwrap_or(&0) + 1) as usize % 10] = 20.0;
///     Ok(())
/// };
/// let mut session = Session::new(Config::new(0.5)?, Version::V2);
/// let mut draws = Draws::new(1, 0);
/// let done = Generate::new(100)
///     .with_end_token(9)
///     .run(&mut session, || draws.next_draw(), model, &[4], &mut Scratch::new())
///     .unwrap();
/// assert_eq!((done.tokens, done.stop), (vec![5, 6, 7, 8, 9], Stop::EndToken));
/// assert_eq!(draws.step(), 5);
/// # Ok::<(), sortless::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generate {
    limit: usize,
    end_token: Option<u32>,
    retain_steps: bool,
}

impl Generate {
    /// At most `limit` tokens, no end token; steps are not retained.
    pub fn new(limit: usize) -> Self {
        Self { limit, end_token: None, retain_steps: false }
    }

    /// Ends after this token.
    pub fn with_end_token(self, token: u32) -> Self {
        Self { end_token: Some(token), ..self }
    }

    /// Keeps every [`Step`], not only the tokens.
    pub fn with_steps(self) -> Self {
        Self { retain_steps: true, ..self }
    }

    /// Generates. The model is given the prompt and all tokens so far, and a row to fill, which has the last row in it. A draw is taken only
    /// after the model gave a row and the row was found good.
    ///
    /// # Errors
    /// The model's error, or what is wrong with its row. What succeeded before comes with it.
    pub fn run<E: Element, M>(
        &self,
        session: &mut Session,
        draw: impl FnMut() -> f64,
        model: impl FnMut(&[u32], &mut Vec<E>) -> Result<(), M>,
        prompt: &[u32],
        scratch: &mut Scratch,
    ) -> Result<Generated, GenerateError<M>> {
        let observer = |_: &Step| ControlFlow::Continue(());
        self.observe(session, draw, model, prompt, scratch, observer)
    }

    /// As [`run`](Self::run), with an observer that is told every step and can end the generation.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn observe<E: Element, M>(
        &self,
        session: &mut Session,
        mut draw: impl FnMut() -> f64,
        mut model: impl FnMut(&[u32], &mut Vec<E>) -> Result<(), M>,
        prompt: &[u32],
        scratch: &mut Scratch,
        mut observer: impl FnMut(&Step) -> ControlFlow<()>,
    ) -> Result<Generated, GenerateError<M>> {
        let mut text = prompt.to_vec();
        let mut steps = Vec::new();
        let mut row = Vec::new();
        let stop = loop {
            if text.len() - prompt.len() >= self.limit {
                break Stop::Limit;
            }
            let step = match model(&text, &mut row) {
                Ok(()) => session.sample_with(&row, &mut draw, scratch).map_err(StopCause::Sample),
                Err(error) => Err(StopCause::Model(error)),
            };
            let step = match step {
                Ok(step) => step,
                Err(cause) => {
                    let tokens = text.split_off(prompt.len());
                    return Err(GenerateError { tokens, steps, cause });
                }
            };
            text.push(step.token);
            if self.retain_steps {
                steps.push(step);
            }
            let told = observer(&step);
            if self.end_token == Some(step.token) {
                break Stop::EndToken;
            }
            if told.is_break() {
                break Stop::Observer;
            }
        };
        Ok(Generated { tokens: text.split_off(prompt.len()), steps, stop })
    }
}
