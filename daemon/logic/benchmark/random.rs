//! Numbers that look random and can be repeated.

/// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2016).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Random {
        // Zero is its only fixed point.
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `bound`; 0 when that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The upper half of the product: fast, and as even as anybody needs here (Lemire, 2019).
        u64::try_from((u128::from(self.number()) * u128::from(bound)) >> 64).unwrap_or(0)
    }

    /// Puts a list into another order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            let other = usize::try_from(self.below(last as u64 + 1)).unwrap_or(last);
            list.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_even_and_repeatable() {
        let mut random = Random::new(0);
        let mut counts = [0_u32; 10];
        for _ in 0..10_000 {
            counts[usize::try_from(random.below(10)).unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        assert_eq!(Random::new(7).number(), Random::new(7).number());
        assert_ne!(Random::new(7).number(), Random::new(8).number());
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn shuffling_keeps_everything() {
        let mut list: Vec<u32> = (0..100).collect();
        Random::new(3).shuffle(&mut list);
        assert_ne!(list, (0..100).collect::<Vec<u32>>());
        list.sort_unstable();
        assert_eq!(list, (0..100).collect::<Vec<u32>>());
    }
}
