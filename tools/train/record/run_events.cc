#include "stagecraft/tools/train/record/run_events.h"

#include <unistd.h>

#include <filesystem>
#include <thread>

#include <nlohmann/json.hpp>

#include "stagecraft/actors/executor/device/processor.h"
#include "stagecraft/actors/launch/port/build_fingerprint.h"
#include "stagecraft/base/process/host_name.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/tools/common/memory_limits.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/run_record/run_environment.h"
#include "stagecraft/tools/train/job/strategy_file.h"

namespace stagecraft::tools {
namespace {

using Event = nlohmann::ordered_json;

Event hardware() {
  const ProcessorFacts processor = processor_of_this_process();
  Event memory = Event::array();
  for (const MemoryLimit& limit : memory_limits(/*threads=*/0)) {
    memory.push_back({{"who", limit.who}, {"bytes", limit.bytes}});
  }
  return {{"processor", processor.name},
          {"capability", processor.capability},
          {"processors", std::thread::hardware_concurrency()},
          {"memory", memory}};
}

Event error_object(const std::exception& error) {
  Event object{{"message", error.what()}};
  if (const auto* ours = dynamic_cast<const Error*>(&error)) {
    object["code"] = to_string(ours->code());
    if (ours->context().rank) {
      object["rank"] = ours->context().rank->value;
    }
    if (!ours->context().task.empty()) {
      object["task"] = ours->context().task;
    }
  }
  return object;
}

}  // namespace

nlohmann::ordered_json start_event(const TrainOptions& options,
                                   const std::vector<std::string>& arguments) {
  const KeepingOptions& keeping = options.keeping;
  Event places{{"folder", keeping.run_dir.value_or("")},
               {"checkpoints", keeping.save_dir.value_or("")},
               {"metrics", keeping.metrics.value_or("")},
               {"trace", keeping.trace.value_or("")}};
  for (auto& [name, place] : places.items()) {
    if (const auto path = place.get<std::string>(); !path.empty()) {
      place = std::filesystem::absolute(path).lexically_normal().string();
    }
  }
  return {{"event", "start"},
          {"command", arguments},
          {"directory", std::filesystem::current_path().string()},
          {"environment", variables_of_run(environ)},
          {"job", variables_of_job(environ)},
          {"build", build_fingerprint()},
          {"host", host_name()},
          {"process", getpid()},
          {"boot", boot_id()},
          {"hardware", hardware()},
          {"places", places}};
}

nlohmann::ordered_json began_event(const TrainJob& job,
                                   std::int64_t steps_made,
                                   const std::vector<WorkerPlace>& workers,
                                   const WorkerLogs& logs) {
  Event event{{"event", "began"}, {"step", steps_made}, {"steps", job.choice.steps}};
  if (job.start.checkpoint) {
    event["file"] = *job.start.checkpoint;
  }
  event["workers"] = Event::array();
  for (const WorkerPlace& worker : workers) {
    event["workers"].push_back({{"rank", worker.rank.value},
                                {"host", worker.host},
                                {"process", worker.process},
                                {"processor", worker.processor.name},
                                {"log", logs.file_of(worker)}});
  }
  return event;
}

nlohmann::ordered_json complete_event(std::int64_t step, std::int64_t steps) {
  return {{"event", "complete"}, {"step", step}, {"steps", steps}};
}

nlohmann::ordered_json failed_at_event(const Error& failure,
                                       std::int64_t step,
                                       const std::vector<WorkerPlace>& workers,
                                       const WorkerLogs& logs) {
  Event event{{"event", "failed_at"}, {"step", step}};
  if (const auto& rank = failure.context().rank; rank && rank->index() < workers.size()) {
    event["rank"] = rank->value;
    event["host"] = workers[rank->index()].host;
    event["log"] = logs.file_of(workers[rank->index()]);
  }
  return event;
}

ExitCode with_end(RunFolder& folder, const std::function<ExitCode()>& command) {
  const auto end = [&](ExitCode code) {
    return Event{{"event", "end"}, {"exit_status", static_cast<int>(code)}};
  };
  try {
    const ExitCode code = command();
    folder.append(end(code));
    return code == ExitCode::Good && !folder.is_complete() ? ExitCode::WrongUsage : code;
  } catch (const std::exception& error) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    Event failed = end(ours != nullptr ? exit_code(*ours) : ExitCode::Failed);
    failed["error"] = error_object(error);
    folder.append(failed);
    throw;
  }
}

void write_strategy(const TrainJob& job, const RunPlaces& places, Console& console) {
  const bool sayable = unsayable(job).empty();
  write_output(sayable ? places.strategy : places.schedule,
               sayable ? strategy_file(job) : to_string(job.choice.schedule),
               console);
}

}  // namespace stagecraft::tools
