/// TransferFit gives the time of a transfer by its size, as measured between two rows.
///
///     time |          .'
///          |        .'      c up to x0, then m more for every MiB
///        c |______.'
///          +------x0---- size
///
/// Made by code that measures links; a plan's own links (costs.h) are the part beyond x0. Pure.
/// Source: "Pfeife: Automatic Pipeline Parallelism for PyTorch", section 3.3.
#pragma once

#include <span>

#include "stagecraft/scheduler/costs.h"

namespace stagecraft {

struct MeasuredTransfer {
  double bytes = 0;
  double time = 0;
};

struct TransferFit {
  double constant = 0;  ///< c: time of a small transfer
  double per_mib = 0;   ///< m: time of every MiB beyond `knee`
  double knee = 0;      ///< x0, in MiB

  [[nodiscard]] double time_of(double bytes) const;
  /// Returns the link with the same times beyond the knee.
  [[nodiscard]] Link link() const;

  friend bool operator==(const TransferFit&, const TransferFit&) = default;
};

/// Returns the fit with the smallest sum of squared errors, exactly, without start values; of equal
/// ones the fit with the smallest knee. Times never fall with the size.
/// Errors: UsageArgument for no transfers, and for sizes or times that are negative or not finite.
[[nodiscard]] TransferFit fit_transfers(std::span<const MeasuredTransfer> transfers);

}  // namespace stagecraft
