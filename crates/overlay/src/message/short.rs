//! A number in 16 bits: 5 bits of exponent and 11 of mantissa, exact up to 4095 and within 1 part in 4096 above, up to 4.4e12.

const MANTISSA: u32 = 11;
const ONE: u64 = 1 << MANTISSA;

/// The nearest number that 16 bits can hold, encoded.
pub(crate) fn encode(value: u64) -> u16 {
    let mut exponent = 0;
    let mut mantissa = value;
    if value >= ONE {
        exponent = 63 - value.leading_zeros() - MANTISSA + 1;
        let shift = exponent - 1;
        mantissa = value >> shift;
        // Rounded to the nearest; a carry moves into the exponent.
        if shift > 0 && value >> (shift - 1) & 1 == 1 {
            mantissa += 1;
        }
        if mantissa == 2 * ONE {
            mantissa = ONE;
            exponent += 1;
        }
        mantissa -= ONE;
    }
    if exponent > 31 { u16::MAX } else { (exponent << MANTISSA) as u16 | mantissa as u16 }
}

/// The number.
pub(crate) fn decode(short: u16) -> u64 {
    let (exponent, mantissa) = (u32::from(short) >> MANTISSA, u64::from(short) & (ONE - 1));
    if exponent == 0 { mantissa } else { (ONE + mantissa) << (exponent - 1) }
}
