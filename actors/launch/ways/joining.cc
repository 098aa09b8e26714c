#include "stagecraft/actors/launch/ways/joining.h"

#include <fmt/format.h>

#include "stagecraft/actors/launch/network/local_address.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

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

  [[nodiscard]] std::string late_advice(const std::string& address,
                                        std::uint16_t port) const override {
    return fmt::format("start them with stagecraft worker --join {}{}",
                       host_and_port(address, port),
                       is_loopback(address)
                           ? ", on this host alone: for others say at which interface or address "
                             "they reach it (STAGECRAFT_INTERFACE, SpawnOptions::interface)"
                           : "");
  }

 private:
  const int coming_;  ///< -1: unknown
};

}  // namespace

std::unique_ptr<const WorkerWay> workers_that_join(const SpawnOptions& options) {
  return std::make_unique<WorkersThatJoin>(options.workers_coming);
}

}  // namespace stagecraft
