//! Vectors of small numbers, one for each piece, all in one place: how like a question each is.

/// A vector as small numbers: its direction, not its length.
#[expect(clippy::cast_possible_truncation, reason = "a float that is too large becomes the largest number")]
pub fn narrowed(vector: &[f32]) -> Vec<i8> {
    let most = vector.iter().fold(0.0_f32, |most, x| if x.is_finite() { most.max(x.abs()) } else { most });
    let scale = if most > 0.0 { 127.0 / most } else { 0.0 };
    vector.iter().map(|x| if x.is_finite() { (x * scale).round() as i8 } else { 0 }).collect()
}

/// Vectors by place. A place may be empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vectors {
    dims: usize,
    data: Vec<i8>,
    /// One over each vector's length; zero where there is none, or one without a direction.
    inverse: Vec<f32>,
    filled: Vec<bool>,
    /// The sign of each number, 64 in one.
    signs: Vec<u64>,
}

impl Vectors {
    /// Room for one more, empty.
    pub(crate) fn grow(&mut self) {
        self.inverse.push(0.0);
        self.filled.push(false);
        self.make_room();
    }

    fn make_room(&mut self) {
        self.data.resize(self.inverse.len() * self.dims, 0);
        self.signs.resize(self.inverse.len() * self.dims.div_ceil(64), 0);
    }

    /// Fills a place. What has another length than the first belongs to another model, and is not taken.
    pub(crate) fn set(&mut self, place: usize, vector: &[i8]) -> bool {
        if self.dims == 0 {
            self.dims = vector.len();
            self.make_room();
        }
        let length = length(vector);
        let (Some(inverse), true) = (self.inverse.get_mut(place), vector.len() == self.dims) else {
            return false;
        };
        *inverse = if length > 0.0 { length.recip() } else { 0.0 };
        self.filled[place] = true;
        self.data[place * self.dims..(place + 1) * self.dims].copy_from_slice(vector);
        let wide = self.dims.div_ceil(64);
        self.signs[place * wide..(place + 1) * wide].copy_from_slice(&signs(vector));
        true
    }

    pub(crate) fn clear(&mut self, place: usize) {
        if let (Some(inverse), Some(filled)) = (self.inverse.get_mut(place), self.filled.get_mut(place)) {
            (*inverse, *filled) = (0.0, false);
        }
    }

    pub(crate) fn has(&self, place: usize) -> bool {
        self.filled.get(place).is_some_and(|filled| *filled)
    }

    /// Of these places, about so many whose vectors have the most signs in common with a question: a quick look, to
    /// choose where to look closely.
    pub(crate) fn near(&self, question: &[i8], places: &[usize], most: usize) -> Vec<usize> {
        let wide = self.dims.div_ceil(64);
        if wide == 0 || question.len() != self.dims {
            return Vec::new();
        }
        let own = signs(question);
        let (mut distances, mut counts) = (Vec::with_capacity(places.len()), vec![0_usize; self.dims + 1]);
        for place in places {
            let theirs = &self.signs[place * wide..(place + 1) * wide];
            let distance = if self.filled[*place] { distance(&own, theirs).min(self.dims) } else { self.dims };
            counts[distance] += 1;
            distances.push(distance);
        }
        let mut all = 0;
        let within = counts.iter().position(|count| {
            all += count;
            all >= most
        });
        let within = within.unwrap_or(self.dims);
        places.iter().zip(distances).filter(|(_, distance)| *distance <= within).map(|(place, _)| *place).collect()
    }

    /// The cosine between a question and the vectors of these places, by place; zero elsewhere.
    pub(crate) fn cosines(&self, question: &[i8], places: &[usize]) -> Vec<f32> {
        let mut cosines = vec![0.0; self.inverse.len()];
        for (cosine, place) in self.likeness(question, places).zip(places) {
            cosines[*place] = cosine;
        }
        cosines
    }

    /// The same for each of these places, in their order.
    #[expect(clippy::cast_precision_loss, reason = "a sum of so few small products is exact")]
    pub(crate) fn likeness<'v>(&'v self, question: &[i8], places: &'v [usize]) -> impl Iterator<Item = f32> + use<'v> {
        let own = length(question);
        let comparable = self.dims > 0 && question.len() == self.dims && own > 0.0;
        let wide: Vec<i16> = question.iter().map(|x| i16::from(*x)).collect();
        places.iter().map(move |place| {
            if !comparable {
                return 0.0;
            }
            let vector = &self.data[place * self.dims..(place + 1) * self.dims];
            dot(vector, &wide) as f32 * self.inverse[*place] / own
        })
    }
}

/// Which numbers are below zero.
fn signs(vector: &[i8]) -> Vec<u64> {
    vector.chunks(64).map(|part| part.iter().fold(0, |bits, x| (bits << 1) | u64::from(*x < 0))).collect()
}

/// How many signs differ. Four by four, so that a compiler makes one instruction of many.
fn distance(one: &[u64], other: &[u64]) -> usize {
    let ((ones, left), (others, right)) = (one.as_chunks::<4>(), other.as_chunks::<4>());
    let mut all = 0;
    for (a, b) in ones.iter().zip(others) {
        all += (0..4).map(|at| (a[at] ^ b[at]).count_ones()).sum::<u32>();
    }
    all += left.iter().zip(right).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
    all as usize
}

/// Written so that a compiler makes one instruction of many products.
fn dot(vector: &[i8], question: &[i16]) -> i32 {
    let mut sums = [0_i32; 8];
    let (parts, rest) = vector.as_chunks::<8>();
    let (others, left) = question.as_chunks::<8>();
    for (part, other) in parts.iter().zip(others) {
        for ((sum, x), y) in sums.iter_mut().zip(part).zip(other) {
            *sum += i32::from(i16::from(*x) * *y);
        }
    }
    let tail: i32 = rest.iter().zip(left).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum();
    sums.iter().sum::<i32>() + tail
}

#[expect(clippy::cast_precision_loss, reason = "a sum of so few small products is exact")]
fn length(vector: &[i8]) -> f32 {
    let squares: i64 = vector.iter().map(|x| i64::from(*x) * i64::from(*x)).sum();
    (squares as f32).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likeness_is_that_of_the_directions() {
        let mut vectors = Vectors::default();
        (0..4).for_each(|_| vectors.grow());
        let turn: Vec<f32> = (0_u8..20).map(|n| f32::from(n) - 10.0).collect();
        let back: Vec<f32> = turn.iter().map(|x| x * -3.0).collect();
        assert!(vectors.set(0, &narrowed(&turn)) && vectors.set(2, &narrowed(&back)));
        assert!(!vectors.set(1, &[1, 2, 3]), "of another model");
        assert!(vectors.set(3, &[0; 20]) && vectors.has(3), "without a direction it is like nothing");
        let cosines = vectors.cosines(&narrowed(&turn), &[0, 1, 2, 3]);
        assert!((cosines[0] - 1.0).abs() < 0.01 && (cosines[2] + 1.0).abs() < 0.01);
        assert!(cosines[1].abs() < f32::EPSILON && cosines[3].abs() < f32::EPSILON);
        assert_eq!(vectors.cosines(&[1, 2], &[0, 1]), [0.0; 4]);
        assert_eq!(vectors.near(&narrowed(&turn), &[0, 1, 2, 3], 1), [0]);
        assert_eq!(vectors.near(&narrowed(&back), &[0, 2], 1), [2]);
    }

    #[test]
    fn odd_numbers_are_small_numbers() {
        assert_eq!(narrowed(&[f32::NAN, f32::INFINITY, 2.0, -1.0]), [0, 0, 127, -64]);
        assert_eq!(narrowed(&[0.0, -0.0]), [0, 0]);
        assert!(narrowed(&[]).is_empty());
    }
}
