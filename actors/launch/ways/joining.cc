#include "stagecraft/actors/launch/ways/joining.h"

#include <fmt/format.h>

#include "stagecraft/actors/launch/network/local_address.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

std::string command_text(const WorkerProcessOptions& join) {
  return fmt::format(
      "stagecraft worker --join {} --credentials {}{}",
      host_and_port(join.host, join.port),
      join.credentials,
      is_loopback(join.host)
          ? ", on this host alone: for others say at which interface or address "
            "they reach it (STAGECRAFT_INTERFACE; in a program: SpawnOptions::interface)"
          : "");
}

class WorkersThatJoin final : public WorkerWay {
 public:
  explicit WorkersThatJoin(int coming) : coming_(coming) {}

  [[nodiscard]] bool starts_workers() const override { return false; }
  [[nodiscard]] bool is_elsewhere() const override { return true; }

  void require_places(int places) const override {
    if (coming_ >= 0 && places > coming_) {
      throw Error(Errc::UsageArgument,
                  fmt::format("{} worker processes are needed, and {} come: start more of them, or "
                              "use fewer ranks",
                              places,
                              coming_));
    }
  }

  [[nodiscard]] std::string start_advice(const WorkerProcessOptions& join) const override {
    return "start each worker with a folder of its own: " + command_text(join);
  }

  [[nodiscard]] std::string late_advice(const WorkerProcessOptions& join) const override {
    return "start them, each with a folder of its own, with " + command_text(join);
  }

 private:
  const int coming_;  ///< -1: unknown
};

}  // namespace

std::unique_ptr<const WorkerWay> workers_that_join(const SpawnOptions& options) {
  return std::make_unique<WorkersThatJoin>(options.workers_coming);
}

}  // namespace stagecraft
