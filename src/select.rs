//! Weighted selection: where in an order a mass or a count is reached, without sorting.

/// Something that can be ordered by an integer; equal keys stay in the order of the list, which is that of ids.
pub(crate) trait Keyed: Copy {
    fn key(&self) -> u64;
}

/// What to look for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// The first entry whose cumulative mass exceeds this.
    Mass(u64),
    /// The entry of this rank, from 1.
    Count(u64),
}

/// Where it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<T> {
    /// The entry.
    pub entry: T,
    /// The mass up to and with it.
    pub mass: u64,
    /// The number of entries up to and with it.
    pub count: u64,
}

/// Lists up to this long are sorted; each is all that is left of a much longer one.
const SMALL: usize = 64;

const BUCKET_BITS: u32 = 10;

/// Reused memory of [`select`].
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    buckets: Vec<(u64, u64)>,
    order: Vec<(u64, u32)>,
}

/// Finds `target` in `entries`, whose masses stand beside them. Both lists are used up.
///
/// Every round sums masses per bucket of keys, finds the bucket where the target falls and goes on inside it, until a
/// single key or few entries are left: at most seven rounds over ever fewer entries. If the target lies
/// beyond the end, the last entry of the order is the answer; `None` only for an empty list.
pub(crate) fn select<T: Keyed>(
    entries: &mut Vec<T>,
    masses: &mut Vec<u64>,
    target: Target,
    buffers: &mut Buffers,
) -> Option<Found<T>> {
    let (mut mass, mut count) = (0u64, 0u64);
    let reached = |mass: u64, count: u64| match target {
        Target::Mass(m) => mass > m,
        Target::Count(c) => count >= c,
    };
    loop {
        let (low, high) = entries.iter().fold((u64::MAX, 0), |(low, high), e| {
            let key = e.key();
            (low.min(key), high.max(key))
        });
        if low >= high || entries.len() <= SMALL {
            break;
        }
        let shift = (64 - (high - low).leading_zeros()).saturating_sub(BUCKET_BITS);
        let bucket_of = |e: &T| ((e.key() - low) >> shift) as usize;
        let buckets = &mut buffers.buckets;
        buckets.clear();
        buckets.resize(1 << BUCKET_BITS, (0, 0));
        for (e, m) in entries.iter().zip(masses.iter()) {
            let bucket = &mut buckets[bucket_of(e)];
            bucket.0 += m;
            bucket.1 += 1;
        }
        let mut chosen = bucket_of(entries.iter().max_by_key(|e| e.key())?);
        for (b, bucket) in buckets[..chosen].iter().enumerate() {
            if reached(mass + bucket.0, count + bucket.1) {
                chosen = b;
                break;
            }
            mass += bucket.0;
            count += bucket.1;
        }
        let mut kept = 0;
        for i in 0..entries.len() {
            if bucket_of(&entries[i]) == chosen {
                entries[kept] = entries[i];
                masses[kept] = masses[i];
                kept += 1;
            }
        }
        entries.truncate(kept);
        masses.truncate(kept);
    }

    let order = &mut buffers.order;
    order.clear();
    order.extend(entries.iter().enumerate().map(|(i, e)| (e.key(), i as u32)));
    if entries.len() <= SMALL {
        order.sort_unstable();
    } // else all keys are equal and the list is in order already
    let mut last = None;
    for &(_, i) in order.iter() {
        mass += masses[i as usize];
        count += 1;
        last = Some(Found { entry: entries[i as usize], mass, count });
        if reached(mass, count) {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Entry(u64, u32);

    impl Keyed for Entry {
        fn key(&self) -> u64 {
            self.0
        }
    }

    /// The plain way: a stable sort and a walk.
    fn walk(entries: &[Entry], masses: &[u64], target: Target) -> (Entry, u64, u64) {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|&i| entries[i].0);
        let (mut mass, mut count) = (0, 0);
        for &i in &order {
            mass += masses[i];
            count += 1;
            let reached = match target {
                Target::Mass(m) => mass > m,
                Target::Count(c) => count >= c,
            };
            if reached || count == entries.len() as u64 {
                return (entries[i], mass, count);
            }
        }
        unreachable!()
    }

    #[test]
    fn selection_is_the_sorted_walk() {
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        };
        let mut buffers = Buffers::default();
        for len in [1usize, 2, 63, 64, 65, 500, 5000] {
            for spread in [1u64, 3, 1000, 1 << 30] {
                let entries: Vec<Entry> =
                    (0..len).map(|i| Entry((next() % spread) << (next() % 30), i as u32)).collect();
                let masses: Vec<u64> = (0..len).map(|_| next() % 1000 * (next() % 2)).collect();
                let total: u64 = masses.iter().sum();
                for t in 0..20 {
                    for target in
                        [Target::Mass(total * t / 19), Target::Count(1 + len as u64 * t / 19)]
                    {
                        let found =
                            select(&mut entries.clone(), &mut masses.clone(), target, &mut buffers)
                                .unwrap();
                        let got = (found.entry, found.mass, found.count);
                        assert_eq!(
                            got,
                            walk(&entries, &masses, target),
                            "{len} {spread} {target:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn an_empty_list_has_no_answer() {
        let found =
            select::<Entry>(&mut vec![], &mut vec![], Target::Mass(0), &mut Buffers::default());
        assert!(found.is_none());
    }
}
