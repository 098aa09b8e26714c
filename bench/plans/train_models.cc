#include "stagecraft/bench/plans/train_models.h"

#include <iostream>
#include <sstream>
#include <variant>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "stagecraft/bench/hardware.h"
#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/stagecraft.h"
#include "stagecraft/tools/train/catalog/models.h"

namespace stagecraft::bench {

tools::TrainOptions train_options(const std::string& model, std::vector<std::string> more) {
  more.insert(more.end(), {"--model", model, "--microbatches", "8", "--microbatch-size", "8"});
  return std::get<tools::TrainOptions>(tools::parse_train_options(more));
}

tools::TrainJob train_job(const std::string& model, int ranks) {
  std::istringstream in;
  std::ostringstream out;
  tools::Console console{in, out, std::cerr};
  const std::string count = std::to_string(ranks);
  return tools::make_job(train_options(model, {"--ranks", count, "--stages", count}), console);
}

std::vector<double> step_seconds(const tools::TrainJob& job, int steps) {
  constexpr int kWarmUp = 2;
  const Cluster cluster = Cluster::local(job.choice.layout.ranks());
  Trainer trainer(cluster, job.program, job.choice.schedule, AdamW{});
  const tools::WorkBatch batch = job.work->batch(0, job.choice);
  std::vector<double> seconds;
  for (int step = 0; step < kWarmUp + steps; ++step) {
    const double took = seconds_of([&] { (void)trainer.step(batch.inputs, batch.labels).get(); });
    if (step >= kWarmUp) {
      seconds.push_back(took);
    }
  }
  return seconds;
}

std::vector<std::string> names_of_train_models() {
  std::vector<std::string> names;
  for (const tools::ModelEntry& model : tools::models()) {
    names.emplace_back(model.name);
  }
  return names;
}

void each_train_model(int argc, char** argv, void (*measure)(const std::string& model)) {
  at::set_num_threads(1);
  fmt::print("{}\n", hardware());
  const std::vector<std::string> asked(argv + 1, argv + argc);
  for (const std::string& model : asked.empty() ? names_of_train_models() : asked) {
    measure(model);
  }
}

}  // namespace stagecraft::bench
