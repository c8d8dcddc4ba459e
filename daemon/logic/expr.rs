//! stub
/// stub
#[derive(Debug, Clone, PartialEq)]
pub struct Expr(pub f64);
/// stub
pub struct Variables { 
/// stub
pub ram_mib: f64, 
/// stub
pub swap_mib: f64, 
/// stub
pub cpus: f64 }
/// stub
pub struct EvaluationError { 
/// stub
pub message: String }
impl Expr { 
/// stub
pub fn evaluate(&self, _v: &Variables) -> Result<f64, EvaluationError> { Ok(self.0) } }
/// stub
pub fn size_in_bytes(m: f64) -> Result<u64, EvaluationError> { Ok((m * 1048576.0) as u64) }
