#include "stagecraft/actors/launch/ways/worker_way.h"

#include "stagecraft/base/check.h"

namespace stagecraft {

ChildProgram WorkerWay::program(WorkerProcessOptions, std::function<void()>) const {
  SC_CHECK(starts_workers(), "a fleet starts no worker that comes by itself");
  return {};
}

std::vector<int> WorkerWay::turns(std::span<const StartState> places) const {
  return start_turns({}, places);
}

std::string WorkerWay::host_text(int, const std::string& reported) const {
  return is_elsewhere() && !reported.empty() ? " on " + reported : "";
}

std::string WorkerWay::end_text(int, const std::string& end) const {
  return end;
}

std::optional<std::string> WorkerWay::prepare(int) const {
  return std::nullopt;
}

bool WorkerWay::give_up(int) const {
  return false;
}

}  // namespace stagecraft
