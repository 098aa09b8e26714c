#include "stagecraft/actors/launch/ways/here.h"

#include "stagecraft/actors/launch/ways/started_worker.h"

namespace stagecraft {
namespace {

class WorkersHere final : public WorkerWay {
 public:
  explicit WorkersHere(const SpawnOptions& options)
      : options_(options), program_(find_worker_program(options.program)) {}

  [[nodiscard]] bool starts_workers() const override { return true; }
  [[nodiscard]] bool is_elsewhere() const override { return false; }

  [[nodiscard]] ChildProgram program(WorkerProcessOptions join,
                                     std::function<void()>) const override {
    join.bind = join.host;
    return {.path = program_.path,
            .arguments = joining_words(program_, join),
            .input = {},
            .on_line = options_.log_dir.empty() ? nullptr : output_of_worker(options_, join, "")};
  }

  [[nodiscard]] std::string late_advice(const WorkerProcessOptions&) const override {
    return "does the worker program call worker_main?";
  }

 private:
  const SpawnOptions options_;
  const WorkerProgram program_;
};

}  // namespace

std::unique_ptr<const WorkerWay> workers_here(const SpawnOptions& options) {
  return std::make_unique<WorkersHere>(options);
}

}  // namespace stagecraft
