#include "stagecraft/base/error.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/printable.h"

namespace stagecraft {
namespace {

struct CodeEntry {
  Errc code;
  ErrorFamily family;
  std::string_view name;
};

constexpr std::array kCodes{
    CodeEntry{Errc::UsageArgument, ErrorFamily::Usage, "usage.argument"},
    CodeEntry{Errc::UsageFile, ErrorFamily::Usage, "usage.file"},
    CodeEntry{Errc::ScheduleParse, ErrorFamily::Schedule, "schedule.parse"},
    CodeEntry{Errc::ScheduleInvalid, ErrorFamily::Schedule, "schedule.invalid"},
    CodeEntry{Errc::ScheduleParameter, ErrorFamily::Schedule, "schedule.parameter"},
    CodeEntry{Errc::CompileCapture, ErrorFamily::Compile, "compile.capture"},
    CodeEntry{Errc::CompilePartition, ErrorFamily::Compile, "compile.partition"},
    CodeEntry{Errc::CompileShape, ErrorFamily::Compile, "compile.shape"},
    CodeEntry{Errc::PlanInvalid, ErrorFamily::Plan, "plan.invalid"},
    CodeEntry{Errc::PlanInfeasible, ErrorFamily::Plan, "plan.infeasible"},
    CodeEntry{Errc::TransportClosed, ErrorFamily::Transport, "transport.closed"},
    CodeEntry{Errc::TransportRefused, ErrorFamily::Transport, "transport.refused"},
    CodeEntry{Errc::WireFormat, ErrorFamily::Transport, "wire.format"},
    CodeEntry{Errc::DeviceOutOfMemory, ErrorFamily::Device, "device.out_of_memory"},
    CodeEntry{Errc::DeviceFailed, ErrorFamily::Device, "device.failed"},
    CodeEntry{Errc::WorkerFailed, ErrorFamily::Worker, "worker.failed"},
    CodeEntry{Errc::WorkerAborted, ErrorFamily::Worker, "worker.aborted"},
    CodeEntry{Errc::WorkerPhase, ErrorFamily::Worker, "worker.phase"},
    CodeEntry{Errc::WorkerLost, ErrorFamily::Worker, "worker.lost"},
    CodeEntry{Errc::NonFinite, ErrorFamily::Worker, "worker.non_finite"},
    CodeEntry{Errc::ClusterTimeout, ErrorFamily::Cluster, "cluster.timeout"},
    CodeEntry{Errc::ClusterClosed, ErrorFamily::Cluster, "cluster.closed"},
    CodeEntry{Errc::ClusterMember, ErrorFamily::Cluster, "cluster.member"},
    CodeEntry{Errc::CheckpointFormat, ErrorFamily::Usage, "checkpoint.format"},
    CodeEntry{Errc::CheckpointMismatch, ErrorFamily::Usage, "checkpoint.mismatch"},
    CodeEntry{Errc::Cancelled, ErrorFamily::Worker, "future.cancelled"},
    CodeEntry{Errc::Internal, ErrorFamily::Internal, "internal"},
};

const CodeEntry& entry(Errc code) {
  for (const CodeEntry& e : kCodes) {
    if (e.code == code) {
      return e;
    }
  }
  return kCodes.back();
}

template <class T>
void fill(T& field, const T& more) {
  if (field == T{}) {
    field = more;
  }
}

}  // namespace

ErrorFamily family(Errc code) {
  return entry(code).family;
}

std::string_view to_string(Errc code) {
  return entry(code).name;
}

Error::Error(Errc code, std::string text) : code_(code), text_(std::move(text)) {
  // Many texts quote a file or a peer. They become printable here, so that no reader can forget it.
  text_ = printable(text_, "\n\t");
  render();
}

Error& Error::about(std::string option) {
  option_ = std::move(option);
  render();
  return *this;
}

Error& Error::advise(std::string advice) {
  advice_ = std::move(advice);
  render();
  return *this;
}

Error& Error::with(const ErrorContext& more) {
  fill(context_.rank, more.rank);
  fill(context_.stage, more.stage);
  fill(context_.microbatch, more.microbatch);
  fill(context_.step, more.step);
  fill(context_.task, more.task);
  fill(context_.peer, more.peer);
  render();
  return *this;
}

Error& Error::because(const Error& cause) {
  cause_ = std::make_shared<const Error>(cause);
  render();
  return *this;
}

void Error::render() {
  std::string where;
  const auto add = [&](std::string_view name, const std::string& value) {
    where += fmt::format("{}{} {}", where.empty() ? "" : ", ", name, printable(value));
  };
  const auto add_id = [&](std::string_view name, const auto& id) {
    if (id) {
      add(name, to_string(*id));
    }
  };
  add_id("rank", context_.rank);
  add_id("stage", context_.stage);
  add_id("microbatch", context_.microbatch);
  add_id("step", context_.step);
  if (!context_.task.empty()) {
    add("task", context_.task);
  }
  if (!context_.peer.empty()) {
    add("peer", context_.peer);
  }
  message_ = text_;
  if (const std::size_t at = message_.find(kOption); !option_.empty() && at != std::string::npos) {
    message_.replace(at, kOption.size(), option_);
  }
  what_ = message_;
  if (!advice_.empty()) {
    what_ += fmt::format("; to continue: {}", advice_);
  }
  if (!where.empty()) {
    what_ += fmt::format(" ({})", where);
  }
  if (cause_) {
    what_ += fmt::format("; because {}", cause_->what());
  }
}

Error in_words(const Error& error, const ErrorWords& words) {
  Error told(error);
  for (const auto& [name, name_for_reader] : words.options) {
    if (name == error.option()) {
      told.about(name_for_reader);
    }
  }
  if (!error.advice().empty()) {
    told.advise(words.advice);
  }
  if (error.cause() != nullptr) {
    told.because(in_words(*error.cause(), words));
  }
  return told;
}

}  // namespace stagecraft
