#include "stagecraft/tools/train/record/worker_logs.h"

#include <fmt/format.h>

#include "stagecraft/actors/launch/ways/rank_processes.h"
#include "stagecraft/actors/launch/ways/started_worker.h"

namespace stagecraft::tools {

std::string WorkerLogs::file_of(const WorkerPlace& worker) const {
  return log_of(options_, worker.rank, worker.incarnation);
}

void WorkerLogs::note(const WorkerPlace& worker, std::int64_t step, const std::string& text) const {
  if (!file_of(worker).empty()) {
    const std::string where = fmt::format("step {}", step);
    note_in_log(options_,
                place_in(options_, worker.rank),
                worker.incarnation,
                text.starts_with(where + " ") ? text : where + ": " + text);
  }
}

Error WorkerLogs::with_log(const Error& failure,
                           std::int64_t step,
                           const std::vector<WorkerPlace>& workers) const {
  const auto& rank = failure.context().rank;
  if (!rank || rank->index() >= workers.size()) {
    return failure;
  }
  const WorkerPlace& worker = workers[rank->index()];
  const std::string file = file_of(worker);
  if (file.empty()) {
    return failure;
  }
  note(worker, step, failure.message());
  Error told(failure.code(), fmt::format("{}; its log is {}", failure.text(), file));
  told.about(failure.option()).advise(failure.advice()).with(failure.context());
  if (failure.cause() != nullptr) {
    told.because(*failure.cause());
  }
  return told;
}

}  // namespace stagecraft::tools
