//! Size expressions.
