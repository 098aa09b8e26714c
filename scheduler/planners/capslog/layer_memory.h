/// LayerMemory predicts the bytes of stages of a chain of layers from two measured figures per
/// layer.
///
///     alone  5 3 8 2 7 4      M_i: the peak of a device that holds only this layer
///     added  - 2 6 1 5 3      M_a: the growth of the peak if it follows the layer before
///     layers 1 to 3 hold 3 + 6 + 1
///
/// Both come from trimmed runs (profiling_runs.h) and so include weights, activations, gradients,
/// optimizer and buffers. Read by memory_cut(). A value; any thread may read. Units: bytes.
/// LM-1: a stage never holds less with one more layer at its end.
/// Source: CAPSlog, section III.
#pragma once

#include <cstddef>
#include <vector>

namespace stagecraft {

class LayerMemory {
 public:
  /// Ignores `added[0]`. A growth below 0 is noise of the measurement and counts as 0.
  /// Errors: UsageArgument for no layers, lists of different lengths, and a number that is negative
  /// (`alone`) or not finite.
  LayerMemory(std::vector<double> alone, std::vector<double> added);

  [[nodiscard]] int size() const { return static_cast<int>(alone_.size()); }
  /// Returns the bytes of the stage of layers first..last, both included.
  [[nodiscard]] double of(int first, int last) const {
    const auto f = static_cast<std::size_t>(first);
    return alone_[f] + (grown_[static_cast<std::size_t>(last)] - grown_[f]);
  }
  /// Returns whether fill_first() misses no cut: no layer alone holds more than the layer before
  /// together with it, so no stage holds more if it starts later.
  [[nodiscard]] bool filling_is_exact() const { return filling_is_exact_; }

  /// A stage that grows layer by layer, in the form that memory_cut() needs.
  class Stage {
   public:
    Stage(const LayerMemory& memory, int first) : memory_(&memory), first_(first) {}
    [[nodiscard]] double append(int layer) const { return memory_->of(first_, layer); }

   private:
    const LayerMemory* memory_;
    int first_;
  };
  /// `place`: of its device; it makes no difference here.
  [[nodiscard]] Stage stage_at(int /*place*/, int first) const { return {*this, first}; }
  /// Returns the least that a stage with this layer holds.
  [[nodiscard]] double least(int layer) const { return filling_is_exact_ ? of(layer, layer) : 0; }

 private:
  std::vector<double> alone_;
  std::vector<double> grown_;  // sums of `added`, from layer 1 on
  bool filling_is_exact_ = true;
};

}  // namespace stagecraft
