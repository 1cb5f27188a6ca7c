//! Batches: a row's result depends on that row, its sampler and its draw alone.

#[path = "support/sampling.rs"]
mod sampling;
#[path = "support/mod.rs"]
mod support;

use half::f16;
use sampling::*;
use sortless::{
    Batch, Element, Error, Level, NotFinite, Number, Pick, Report, Rows, Sampler, SamplingParams,
    Scratch, rng,
};
use support::*;

type Results = Vec<Result<Pick, Error>>;

const VOCAB: usize = 3000;

/// Rows of every shape, each with parameters and a draw of its own.
struct Work<E> {
    rows: Vec<Vec<E>>,
    samplers: Vec<Sampler>,
    draws: Vec<f64>,
}

impl<E: Make> Work<E> {
    fn new(level: Level) -> Self {
        let mut rows: Vec<Vec<E>> =
            (0..3).flat_map(|seed| shapes::<E>(VOCAB, seed)).map(|(_, row)| row).collect();
        // Two bad ones among them.
        rows[4][700] = E::make(f32::NAN);
        rows[9].fill(E::MASKED);
        let mut random = Random::new(1);
        let samplers = rows.iter().map(|_| sampler(&any_params(&mut random, VOCAB), level));
        let samplers = samplers.collect();
        let draws = (0..rows.len() as u64).map(|row| rng::uniform(3, row, 0)).collect();
        Self { rows, samplers, draws }
    }

    fn slices(&self) -> Vec<&[E]> {
        self.rows.iter().map(|row| &row[..]).collect()
    }

    /// Row by row, each with a scratch of its own.
    fn alone(&self) -> Results {
        let rows = self.rows.iter().zip(&self.samplers).zip(&self.draws);
        rows.map(|((row, sampler), &u)| sampler.sample(row, u, &mut Scratch::new())).collect()
    }

    fn alone_reports(&self) -> Vec<Result<Report, Error>> {
        let rows = self.rows.iter().zip(&self.samplers).zip(&self.draws);
        rows.map(|((row, sampler), &u)| {
            let mut report = Report::default();
            sampler.report(row, u, 6, &mut Scratch::new(), &mut report).map(|()| report)
        })
        .collect()
    }

    /// Results of the rows in another order, put back.
    fn in_order(&self, batch: &mut Batch, order: &[usize]) -> Results {
        let slices: Vec<&[E]> = order.iter().map(|&i| &self.rows[i][..]).collect();
        let samplers: Vec<Sampler> = order.iter().map(|&i| self.samplers[i]).collect();
        let draws: Vec<f64> = order.iter().map(|&i| self.draws[i]).collect();
        let got = batch.sample(&Rows::slices(&slices), &samplers, &draws).unwrap();
        let mut back = vec![Err(Error::NoAllowedToken); got.len()];
        order.iter().zip(got).for_each(|(&i, result)| back[i] = result);
        back
    }
}

fn batches() -> [Batch; 2] {
    [Batch::serial(), Batch::new()]
}

fn same_reports(got: &[Result<Report, Error>], want: &[Result<Report, Error>]) {
    let bits = |r: &Result<Report, Error>| r.as_ref().map(bits).map_err(Error::clone);
    assert!(got.iter().map(bits).eq(want.iter().map(bits)), "{got:?}\nnot {want:?}");
}

#[test]
fn permuted_and_split_batches_give_each_row_its_own_result() {
    fn check<E: Make>() {
        for level in levels() {
            let work = Work::<E>::new(level);
            let want = work.alone();
            assert!(matches!(want[4], Err(Error::NotFinite { index: 700, value: NotFinite::NaN })));
            assert_eq!(want[9], Err(Error::NoAllowedToken));
            assert_eq!(want.iter().filter(|r| r.is_err()).count(), 2);
            let n = want.len();
            let mut random = Random::new(2);
            for mut batch in batches() {
                let mut order: Vec<usize> = (0..n).collect();
                assert_eq!(work.in_order(&mut batch, &order), want);
                order.reverse();
                assert_eq!(work.in_order(&mut batch, &order), want);
                for _ in 0..5 {
                    for i in (1..n).rev() {
                        order.swap(i, random.below(i + 1));
                    }
                    assert_eq!(work.in_order(&mut batch, &order), want);
                }
                for split in [1, 2, 5, n - 1] {
                    let mut joined = Vec::new();
                    let slices = work.slices();
                    for start in (0..n).step_by(split) {
                        let end = n.min(start + split);
                        let rows = Rows::slices(&slices[start..end]);
                        let (samplers, draws) =
                            (&work.samplers[start..end], &work.draws[start..end]);
                        joined.extend(batch.sample(&rows, samplers, draws).unwrap());
                    }
                    assert_eq!(joined, want, "split by {split}");
                }
            }
        }
    }
    check::<f32>();
    check::<f16>();
    check::<half::bf16>();
}

#[cfg(feature = "rayon")]
#[test]
fn any_number_of_threads_gives_the_same() {
    let work = Work::<f16>::new(Level::best());
    let (slices, want, want_reports) = (work.slices(), work.alone(), work.alone_reports());
    let rows = Rows::slices(&slices);
    // One batch wanders through pools that grow and shrink.
    let mut batch = Batch::new();
    for threads in [1, 2, 3, 8, 2, 17, 1, 4] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            for _ in 0..3 {
                let got = batch.sample(&rows, &work.samplers, &work.draws).unwrap();
                assert_eq!(got, want, "{threads} threads");
                let mut reports = vec![Ok(Report::default()); want.len()];
                batch.report_into(&rows, &work.samplers, &work.draws, 6, &mut reports).unwrap();
                same_reports(&reports, &want_reports);
            }
        });
    }
}

#[test]
fn reports_are_those_of_single_rows() {
    for level in levels() {
        let work = Work::<f32>::new(level);
        let want = work.alone_reports();
        let slices = work.slices();
        for mut batch in batches() {
            // Whatever stands there before, results or errors.
            let mut reports = vec![Ok(Report::default()); want.len()];
            reports[0] = Err(Error::NoAllowedToken);
            for _ in 0..2 {
                let rows = Rows::slices(&slices);
                batch.report_into(&rows, &work.samplers, &work.draws, 6, &mut reports).unwrap();
                same_reports(&reports, &want);
            }
        }
    }
}

#[test]
fn matrices_with_strides_and_padding() {
    fn check<E: Make>() {
        let work = Work::<E>::new(Level::best());
        let want = work.alone();
        for (stride, tail) in [(VOCAB, 0), (VOCAB + 1, 0), (VOCAB + 72, 72), (VOCAB + 72, 0)] {
            // Padding that would win, or be a fault, if it were read.
            let mut data = vec![E::make(f32::NAN); stride * want.len() - (stride - VOCAB) + tail];
            for (i, row) in work.rows.iter().enumerate() {
                data[i * stride..][..VOCAB].copy_from_slice(row);
            }
            let rows = Rows::matrix(&data, want.len(), VOCAB, stride).unwrap();
            assert_eq!((rows.len(), rows.is_empty()), (want.len(), false));
            assert_eq!(rows.get(2).unwrap().len(), VOCAB);
            assert!(rows.get(want.len()).is_none() && rows.get(usize::MAX).is_none());
            for mut batch in batches() {
                assert_eq!(batch.sample(&rows, &work.samplers, &work.draws).unwrap(), want);
            }
            // The vocabulary as wide as the stride, with the padding declared.
            if tail == stride - VOCAB {
                let rows = Rows::matrix(&data, want.len(), stride, stride).unwrap();
                let rows = rows.with_valid_vocab(VOCAB);
                assert_eq!(rows.get(0).unwrap().len(), VOCAB);
                for mut batch in batches() {
                    assert_eq!(batch.sample(&rows, &work.samplers, &work.draws).unwrap(), want);
                }
            }
        }
    }
    check::<f32>();
    check::<f16>();
}

#[test]
fn valid_vocab_bounds_what_may_be_drawn() {
    let logits = [[0.0f32, 1.0, 2.0, 9.0], [3.0, 1.0, 2.0, f32::INFINITY]];
    let data = logits.as_flattened();
    let greedy = [Sampler::greedy()];
    let mut batch = Batch::new();
    let mut tokens = |valid| {
        let rows = Rows::matrix(data, 2, 4, 4).unwrap().with_valid_vocab(valid);
        batch.sample(&rows, &greedy, &[0.0; 2]).unwrap()
    };
    let ids = |r: Results| r.into_iter().map(|r| r.map(|p| p.token)).collect::<Vec<_>>();
    assert_eq!(ids(tokens(3)), [Ok(2), Ok(0)]);
    assert_eq!(ids(tokens(1)), [Ok(0), Ok(0)]);
    let fault = Error::NotFinite { index: 3, value: NotFinite::PosInf };
    for all in [4, 5, usize::MAX] {
        assert_eq!(ids(tokens(all)), [Ok(3), Err(fault.clone())]);
    }
    assert_eq!(
        ids(tokens(0)),
        [Err(Error::RowLength { len: 0 }), Err(Error::RowLength { len: 0 })]
    );

    // Separate rows of different lengths are each cut.
    let (short, long) = ([1.0f32, 2.0], [1.0f32, 2.0, 3.0, 4.0]);
    let slices = [&short[..], &long];
    let rows = Rows::slices(&slices).with_valid_vocab(3);
    let picks = Batch::serial().sample(&rows, &greedy, &[0.0; 2]).unwrap();
    assert_eq!(ids(picks), [Ok(1), Ok(2)]);
}

#[test]
fn one_sampler_serves_all_rows() {
    let work = Work::<f32>::new(Level::best());
    let slices = work.slices();
    let shared = sampler(&at(0.9).with_top_p(0.8), Level::best());
    let every = vec![shared; slices.len()];
    for mut batch in batches() {
        let rows = Rows::slices(&slices);
        let one = batch.sample(&rows, &[shared], &work.draws).unwrap();
        assert_eq!(batch.sample(&rows, &every, &work.draws).unwrap(), one);
    }
}

#[test]
fn a_bad_draw_is_its_row_s_alone() {
    let row = [0.0f32, 1.0];
    let slices = [&row[..]; 4];
    let plain = [Sampler::temperature(1.0).unwrap()];
    for mut batch in batches() {
        let draws = [0.9, f64::NAN, 1.0, 0.1];
        let picks = batch.sample(&Rows::slices(&slices), &plain, &draws).unwrap();
        assert!(picks[0].is_ok() && picks[3].is_ok());
        assert_eq!(picks[1], Err(Error::Draw { u: Number(f64::NAN) }));
        assert_eq!(picks[2], Err(Error::Draw { u: Number(1.0) }));
    }
}

#[test]
fn all_or_nothing() {
    let work = Work::<f32>::new(Level::best());
    let alone = work.alone();
    let mut before = vec![alone[0].clone().unwrap(); alone.len()];
    before[1] = alone[1].clone().unwrap();
    for mut batch in batches() {
        let slices = work.slices();
        let rows = Rows::slices(&slices);
        let mut picks = before.clone();
        let error = batch.sample_all(&rows, &work.samplers, &work.draws, &mut picks).unwrap_err();
        let inner = Error::NotFinite { index: 700, value: NotFinite::NaN };
        assert!(error.to_string().contains("row 4"), "{error}");
        assert_eq!(error, Error::Row { row: 4, error: Box::new(inner) });
        assert_eq!(picks, before);

        // Without the bad rows everything comes.
        let good: Vec<usize> = (0..alone.len()).filter(|&i| alone[i].is_ok()).collect();
        let slices: Vec<&[f32]> = good.iter().map(|&i| slices[i]).collect();
        let samplers: Vec<Sampler> = good.iter().map(|&i| work.samplers[i]).collect();
        let draws: Vec<f64> = good.iter().map(|&i| work.draws[i]).collect();
        let want: Vec<Pick> = good.iter().map(|&i| alone[i].clone().unwrap()).collect();
        let mut picks = vec![before[0]; good.len()];
        let rows = Rows::slices(&slices);
        assert_eq!(batch.sample_all(&rows, &samplers, &draws, &mut picks), Ok(()));
        assert_eq!(picks, want);

        // A bad draw in the last row is found, too.
        let mut draws = draws;
        *draws.last_mut().unwrap() = -1.0;
        let row = draws.len() - 1;
        let mut picks = vec![before[0]; good.len()];
        assert_eq!(
            batch.sample_all(&rows, &samplers, &draws, &mut picks),
            Err(Error::Row { row, error: Box::new(Error::Draw { u: Number(-1.0) }) })
        );
        assert_eq!(picks, vec![before[0]; good.len()]);
    }
}

fn shape_of<T: core::fmt::Debug>(result: Result<T, Error>) -> (&'static str, usize, usize) {
    match result {
        Err(Error::Shape { what, expected, found }) => (what, expected, found),
        other => panic!("{other:?}"),
    }
}

#[test]
fn shapes_that_don_t_fit() {
    let data = [0.0f32; 12];
    let matrix = |rows, vocab, stride| Rows::matrix(&data, rows, vocab, stride);
    assert!(matrix(3, 4, 4).is_ok());
    assert!(matrix(2, 4, 8).is_ok()); // the last row needs no padding
    assert!(matrix(0, 4, 4).is_ok());
    assert!(matrix(0, usize::MAX, usize::MAX).is_ok());
    assert_eq!(shape_of(matrix(3, 4, 3)), ("row stride", 4, 3));
    assert_eq!(shape_of(matrix(4, 4, 4)).1, 16);
    assert_eq!(shape_of(matrix(2, 4, 9)).1, 13);
    for (rows, vocab, stride) in [
        (2, 4, usize::MAX),
        (3, 1, usize::MAX / 2 + 1), // twice that wraps to 0
        (usize::MAX, 1, 1),
        (usize::MAX, usize::MAX, usize::MAX),
        (1, usize::MAX, usize::MAX),
        (2, 4, usize::MAX - 3), // plus 4 wraps to 0
        (usize::MAX, 0, usize::MAX),
    ] {
        let (_, expected, found) = shape_of(matrix(rows, vocab, stride));
        assert!(expected > 12 && found == 12, "{rows} {vocab} {stride}");
    }
    // One row needs no stride at all.
    let one = matrix(1, 12, usize::MAX).unwrap();
    assert_eq!(one.get(0).map(<[f32]>::len), Some(12));
}

#[test]
fn lengths_that_don_t_fit() {
    let row = [0.0f32, 1.0];
    let slices = [&row[..]; 3];
    let rows = Rows::slices(&slices);
    let greedy = Sampler::greedy();
    let filler = greedy.sample(&row, 0.0, &mut Scratch::new());
    for mut batch in batches() {
        for n in [0, 2, 4] {
            assert_eq!(shape_of(batch.sample(&rows, &vec![greedy; n], &[0.0; 3])).2, n);
            assert_eq!(shape_of(batch.sample(&rows, &[greedy], &vec![0.0; n])).2, n);
            let mut picks = vec![filler.clone(); n];
            let result = batch.sample_into(&rows, &[greedy], &[0.0; 3], &mut picks);
            assert_eq!(shape_of(result), ("number of results", 3, n));
            assert_eq!(picks, vec![filler.clone(); n]);
            let mut picks = vec![filler.clone().unwrap(); n];
            let result = batch.sample_all(&rows, &[greedy], &[0.0; 3], &mut picks);
            assert_eq!(shape_of(result).2, n);
            let mut reports = vec![Ok(Report::default()); n];
            let result = batch.report_into(&rows, &[greedy], &[0.0; 3], 1, &mut reports);
            assert_eq!(shape_of(result).2, n);
        }
    }
}

#[test]
fn empty_batches() {
    let none: [&[f32]; 0] = [];
    for mut batch in batches() {
        let rows = Rows::slices(&none);
        assert!(rows.is_empty());
        assert_eq!(batch.sample(&rows, &[Sampler::greedy()], &[]), Ok(vec![]));
        assert_eq!(batch.sample(&rows, &[], &[]), Ok(vec![]));
        assert_eq!(batch.sample_all(&rows, &[], &[], &mut []), Ok(()));
    }
}

#[test]
fn empty_rows_are_their_own_fault() {
    fn lengths<E: Element>(rows: &Rows<'_, E>) -> Results {
        Batch::new().sample(rows, &[Sampler::greedy()], &vec![0.0; rows.len()]).unwrap()
    }
    let row = [1.0f32];
    let slices = [&row[..], &[], &row];
    let picks = lengths(&Rows::slices(&slices));
    assert!(picks[0].is_ok() && picks[2].is_ok());
    assert_eq!(picks[1], Err(Error::RowLength { len: 0 }));
    let matrix = Rows::<f32>::matrix(&[], 3, 0, 0).unwrap();
    assert_eq!(lengths(&matrix), vec![Err(Error::RowLength { len: 0 }); 3]);
}

#[test]
fn a_default_batch_is_usable() {
    let row = [0.0f32, 1.0];
    let params = SamplingParams::new().with_top_k(1);
    let sampler = Sampler::new(params).unwrap();
    let picks = Batch::default().sample(&Rows::slices(&[&row[..]]), &[sampler], &[0.5]).unwrap();
    assert_eq!(picks[0].as_ref().unwrap().token, 1);
}
