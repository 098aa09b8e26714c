#include "stagecraft/tools/train/run/run_files.h"

#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/compiler/module/named_tensor.h"
#include "stagecraft/compiler/tensor_files/weights.h"

namespace stagecraft::tools {

bool saves(const KeepingOptions& o) {
  return o.save || o.save_weights || o.save_module || o.save_dir;
}

const std::string* kept_by(const TrainOptions& options) {
  const KeepingOptions& o = options.keeping;
  for (const auto* file : {&o.save,
                           &o.save_weights,
                           &o.save_module,
                           &o.save_dir,
                           &o.metrics,
                           &options.costs.out,
                           &o.trace}) {
    if (*file) {
      return &**file;
    }
  }
  return nullptr;
}

void save_checkpoint(const TrainJob& job, Trainer& trainer, Progress& progress) {
  if (const auto& path = job.options.keeping.save) {
    trainer.save(*path);
    progress.saved(trainer.steps(), *path);
  }
}

void save_weights(const TrainJob& job, Trainer& trainer, Progress& progress) {
  const auto& path = job.options.keeping.save_weights;
  if (!path) {
    return;
  }
  std::vector<NamedTensor> trained;
  for (auto& [name, tensor] :
       job.options.keeping.save_averages ? trainer.averages() : trainer.state_dict()) {
    trained.push_back({name, tensor});
  }
  write_weights(*path, job.work->all_names(std::move(trained)));
  progress.saved_weights(trainer.steps(), *path);
}

void save_module(const TrainJob& job, Trainer& trainer, Progress& progress) {
  const auto& path = job.options.keeping.save_module;
  if (!path) {
    return;
  }
  trainer.save_module(*path);
  progress.report(fmt::format("saved the module of step {} to {}\n", trainer.steps(), *path),
                  {{"event", "saved_module"}, {"step", trainer.steps()}, {"file", *path}});
}

}  // namespace stagecraft::tools
