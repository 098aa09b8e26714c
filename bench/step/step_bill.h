/// StepBill divides the time of a training step into parts, rank by rank.
///
/// measure_bill makes it from its observations of each rank. It holds plain numbers and uses no
/// clock and no LibTorch.
/// SB-1: the parts of a step add up to the step. Time that no other part claims belongs to the
///       runtime: interpreter, autograd's engine, the executor, the driver.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::bench {

enum class Part {
  MatrixProducts,  ///< includes convolutions
  Attention,
  OtherOperators,
  Allocator,  ///< allocating and freeing tensors' memory inside tasks
  Accumulate,
  Update,  ///< includes the mean of the gradients and their norms
  Runtime,
  Waiting,  ///< for other ranks and for the driver; includes the vote
};
inline constexpr std::size_t kParts = 8;

[[nodiscard]] std::string_view name_of(Part part);
/// Returns the part that an operator or a node of autograd counts for, without the calls inside it,
/// by its name in RecordFunction.
[[nodiscard]] Part part_of(std::string_view name);

/// PartSeconds holds the time of each part. Units: seconds.
class PartSeconds {
 public:
  double& operator[](Part part) { return seconds_[static_cast<std::size_t>(part)]; }
  double operator[](Part part) const { return seconds_[static_cast<std::size_t>(part)]; }
  [[nodiscard]] double sum() const;
  PartSeconds& operator+=(const PartSeconds& other);
  [[nodiscard]] PartSeconds operator/(double by) const;

 private:
  std::array<double, kParts> seconds_{};
};

/// Returns the parts of a step on one rank that took `seconds`; `known` are the measured parts.
/// Ensures: SB-1.
/// Errors: std::invalid_argument if they are longer than the step, or if the runtime's part is
///         among them.
[[nodiscard]] PartSeconds parted(double seconds, PartSeconds known);

class StepBill {
 public:
  /// Requires: every step has the same number of ranks.
  void add(const std::vector<PartSeconds>& ranks);

  [[nodiscard]] std::size_t ranks() const { return sums_.size(); }
  /// Returns the mean of the added steps. Requires: one was added.
  [[nodiscard]] PartSeconds of(std::size_t rank) const;
  /// Returns the sum over the ranks.
  [[nodiscard]] PartSeconds in_all() const;
  /// Returns the seconds of a step by the clock, to which each rank's parts add up.
  [[nodiscard]] double step() const;

 private:
  std::vector<PartSeconds> sums_;
  int steps_ = 0;
};

/// Returns a line per part: milliseconds per step and percent of it, for each rank and in all.
[[nodiscard]] std::string table_of(const StepBill& bill);
/// Returns one line, "matrix products 52.1 %, attention 9.8 %", over all ranks.
[[nodiscard]] std::string shares_of(const StepBill& bill);

}  // namespace stagecraft::bench
