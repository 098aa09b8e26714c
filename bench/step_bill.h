/// StepBill: what a training step is made of, rank by rank.
///
/// Made by measure_bill from what it has seen of each rank; plain numbers, no clock, no LibTorch.
/// SB-1: the parts of a step add up to the step. What nobody claims is the runtime's: interpreter,
///       autograd's engine, the executor, the driver.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::bench {

enum class Part {
  MatrixProducts,  ///< convolutions too
  Attention,
  OtherOperators,
  Allocator,  ///< of tensors' memory, given and taken back inside tasks
  Accumulate,
  Update,  ///< the mean of the gradients and their norms too
  Runtime,
  Waiting,  ///< for other ranks and for the driver; the vote too
};
inline constexpr std::size_t kParts = 8;

[[nodiscard]] std::string_view name_of(Part part);
/// Whose the time of an operator or of a node of autograd is, without what these call, by the name
/// that RecordFunction has for it.
[[nodiscard]] Part part_of(std::string_view name);

/// Units: seconds.
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

/// A step on one rank, of `seconds`, of which `known` are the parts that somebody has measured.
/// Ensures: SB-1. Errors: std::invalid_argument where they are longer than the step, or where the
///          runtime's is among them.
[[nodiscard]] PartSeconds parted(double seconds, PartSeconds known);

class StepBill {
 public:
  /// Requires: as many ranks in every step.
  void add(const std::vector<PartSeconds>& ranks);

  [[nodiscard]] std::size_t ranks() const { return sums_.size(); }
  /// The mean of the steps added. Requires: one was.
  [[nodiscard]] PartSeconds of(std::size_t rank) const;
  /// The sum over the ranks.
  [[nodiscard]] PartSeconds in_all() const;
  /// Seconds of a step, by the clock: what each rank's parts add up to.
  [[nodiscard]] double step() const;

 private:
  std::vector<PartSeconds> sums_;
  int steps_ = 0;
};

/// A line per part: milliseconds a step and per cent of it, for each rank and in all.
[[nodiscard]] std::string table_of(const StepBill& bill);
/// In one line: "matrix products 52.1 %, attention 9.8 %", of all ranks.
[[nodiscard]] std::string shares_of(const StepBill& bill);

}  // namespace stagecraft::bench
