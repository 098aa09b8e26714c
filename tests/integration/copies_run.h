/// CopiesRun trains two copies of each of two stages.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/integration/models.h"

namespace stagecraft::tests {

/// Stage 0 is on ranks 0 and 2, stage 1 on ranks 1 and 3.
struct CopiesRun {
  explicit CopiesRun(Cluster on,
                     TrainerOptions options = {},
                     std::optional<double> clip = 1.0,
                     std::int64_t width = 8)
      : cluster(std::move(on)),
        trainer(cluster,
                make_program({.stages = 2, .dropout = 0.2, .statistics = false, .width = width}),
                Schedule::parse("@place 0=0,2 1=1,3\n" +
                                to_string(one_f_one_b(StageGraph::chain(2), kMicrobatches / 2))),
                AdamW{.lr = 1e-2},
                [&] {
                  options.seed = 9;
                  options.clip = clip;
                  return options;
                }()) {}

  void train(std::int64_t until) {
    while (trainer.steps() < until) {
      (void)step_of(trainer, trainer.steps()).get();
    }
  }

  Cluster cluster;
  Trainer trainer;
};

}  // namespace stagecraft::tests
