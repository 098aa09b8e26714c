/// OutputExchange passes a step's outputs from the driver's row to the caller's thread, and the
/// gradients of these outputs back.
///
///     driver's row     F0: put     F1: put           B0: gradients_of     B1: gradients_of
///     caller's thread              outputs()  loss  give()
///
/// A pipelined module (pipelined.h) has one; its driver code and its caller's thread share it. The
/// label of each microbatch tells which one of which run it is.
/// Thread: put() and gradients_of() on the thread of the driver's row, all others on the caller's,
/// but end() on any.
/// HO-1: each wait of a run ends with end(), which the end of its step calls, however it ends. The
///       wait for gradients also ends after the patience, so that the rank is there for the abort.
/// HO-2: what a run puts or asks for after its end concerns no later run.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/clock.h"

namespace stagecraft {

class OutputExchange {
 public:
  using Tensors = std::vector<at::Tensor>;

  struct Place {
    std::int64_t run = 0;
    std::size_t microbatch = 0;
  };

  /// Returns the labels of a run's step, a row for each microbatch.
  [[nodiscard]] static at::Tensor labels(std::int64_t run, int microbatches);
  /// Returns the place that a microbatch's label names.
  [[nodiscard]] static Place place_of(const at::Tensor& label);

  /// Begins the next run, for the caller's thread, and returns its number, from 1 on. `patience`:
  /// the longest wait for its gradients, from here on.
  [[nodiscard]] std::int64_t begin(int microbatches, std::chrono::milliseconds patience);
  /// Ends the run, if it is the last one: all its waits end, and no gradients come.
  void end(std::int64_t run);

  /// Takes the outputs of a microbatch. Returns whether they are of the run: not if the caller's
  /// thread captures the module.
  [[nodiscard]] bool put(Place place, Tensors outputs);
  /// Waits for the outputs of all microbatches. Empty if the run ends before.
  [[nodiscard]] std::vector<Tensors> outputs();

  /// Gives the gradients of all microbatches, undefined for outputs without one.
  void give(std::vector<Tensors> gradients);
  /// Waits for the gradients of a microbatch. Errors: UsageArgument if the run ends without them;
  /// ClusterTimeout.
  [[nodiscard]] Tensors gradients_of(Place place);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread::id caller_;
  std::int64_t run_ = 0;
  bool running_ = false;
  const std::shared_ptr<const Clock> clock_ = Clock::current();
  Clock::Time deadline_;
  std::size_t arrived_ = 0;
  std::vector<Tensors> outputs_, gradients_;  ///< by microbatch
};

/// Returns the loss that stands for what the caller does with `outputs`: a zero, whose backward
/// returns the gradients that the caller gives, and zeros while the module is captured.
[[nodiscard]] at::Tensor loss_of_caller(const std::shared_ptr<OutputExchange>& to,
                                        const at::Tensor& label,
                                        const OutputExchange::Tensors& outputs);

}  // namespace stagecraft
