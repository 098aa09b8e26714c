/// Trainer hides stagecraft::Trainer from the tests: a trainer whose options name no device, and
/// whose ranks are threads of this process, is on the usual device.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "stagecraft/stagecraft.h"
#include "stagecraft/tests/support/usual_device.h"

namespace stagecraft::tests {

inline TrainerOptions on_usual_device(TrainerOptions options) {
  if (options.device == TrainerOptions().device) {
    options.device = testing::usual_device;
  }
  return options;
}

inline TrainerOptions on_usual_device(const Cluster& cluster, TrainerOptions options) {
  const auto is_thread = [](const WorkerPlace& worker) { return worker.process == getpid(); };
  return std::ranges::all_of(cluster.workers(), is_thread) ? on_usual_device(std::move(options))
                                                           : options;
}

/// Is the first base of a trainer, and thereby ends last.
struct AfterTrainer {
  ~AfterTrainer() { testing::at_the_end(); }
};

class Trainer : private AfterTrainer, public stagecraft::Trainer {
 public:
  /// `order`: a schedule, its name, or a strategy.
  template <class Order>
  Trainer(const Cluster& cluster,
          Program program,
          const Order& order,
          Optimizer optimizer,
          TrainerOptions options = {})
      : stagecraft::Trainer(cluster,
                            std::move(program),
                            order,
                            std::move(optimizer),
                            on_usual_device(cluster, std::move(options))) {}
  template <class Order>
  Trainer(Program program, const Order& order, Optimizer optimizer, TrainerOptions options = {})
      : stagecraft::Trainer(
            std::move(program), order, std::move(optimizer), on_usual_device(std::move(options))) {}
  Trainer(const Cluster& cluster,
          Execution execution,
          Optimizer optimizer,
          TrainerOptions options = {})
      : stagecraft::Trainer(cluster,
                            std::move(execution),
                            std::move(optimizer),
                            on_usual_device(cluster, std::move(options))) {}
};

}  // namespace stagecraft::tests
