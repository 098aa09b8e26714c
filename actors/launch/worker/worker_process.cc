#include "stagecraft/actors/launch/worker/worker_process.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/actors/executor/device/cuda_library.h"
#include "stagecraft/actors/executor/device/processor.h"
#include "stagecraft/actors/launch/network/find_listener.h"
#include "stagecraft/actors/launch/network/local_address.h"
#include "stagecraft/actors/launch/threads.h"
#include "stagecraft/actors/launch/worker/end_now.h"
#include "stagecraft/actors/launch/worker/worker_host.h"
#include "stagecraft/actors/messages/caf_types.h"
#include "stagecraft/actors/messages/close_transports.h"
#include "stagecraft/actors/security/temporary_credentials.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process/host_name.h"
#include "stagecraft/base/process/standstill.h"
#include "stagecraft/base/time_left.h"
#include "stagecraft/futures/transport/shared_memory/memory_file.h"

namespace stagecraft {
namespace {

/// Reads until the other end is closed: no process holds it then.
void wait_for_end(int lifeline) {
  char nothing = 0;
  while (true) {
    const auto got = read(lifeline, &nothing, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) {
      return;
    }
  }
}

/// Removes a worker's credentials at the end of its work, however it ends. The thread of watch()
/// keeps them too, so that their own destructor may not run.
struct RemovedAtEnd {
  std::shared_ptr<const TemporaryCredentials> credentials;

  explicit RemovedAtEnd(std::shared_ptr<const TemporaryCredentials> c)
      : credentials(std::move(c)) {}
  ~RemovedAtEnd() {
    if (credentials) {
      credentials->remove();
    }
  }
  RemovedAtEnd(const RemovedAtEnd&) = delete;
  RemovedAtEnd& operator=(const RemovedAtEnd&) = delete;
};

/// Ends this process with the lifeline: its work could serve no one after that.
void watch(int lifeline, const std::shared_ptr<const TemporaryCredentials>& handed_over) {
  std::thread([lifeline, handed_over] {
    wait_for_end(lifeline);
    end_now(handed_over, 0);
  }).detach();
}

/// Returns how the port ends this process after the loss of a tensor, or without the port itself
/// (keeps WP-2).
DataPortOptions ending(const std::shared_ptr<const TemporaryCredentials>& handed_over) {
  return {.when_broken =
              [handed_over](const std::string& key, const Error& why) {
                log(Level::Error, "worker ends", {{"key", key}, {"why", why.what()}});
                end_now(handed_over, kToBeReplaced);
              },
          .when_failed =
              [handed_over](const Error& why) {
                log(Level::Error, "worker ends", {{"why", why.what()}});
                end_now(handed_over, kToBeReplaced);
              }};
}

/// How long to wait for ranks that end: one may be in a long instruction.
constexpr std::chrono::seconds kEndOfRanks{10};

/// Pause before another try to join a driver that has just ended.
constexpr std::chrono::milliseconds kTryAgain{200};

/// Ends the ranks of a driver that is gone. Those leave their copies of states.
void end_ranks(ActorHost& host, const std::vector<Worker>& ranks, LeftCopies& left) {
  left.expect();
  const Error why(Errc::ClusterClosed, kConnectionLost);
  const Deadline deadline = std::chrono::steady_clock::now() + kEndOfRanks;
  close_transports(host, ranks, why, kEndOfRanks, *Clock::steady());
  std::vector<caf::actor> all;
  for (const Worker& rank : ranks) {
    all.push_back(caf::actor_cast<caf::actor>(rank.agent));
    all.push_back(caf::actor_cast<caf::actor>(rank.plan_thread));
  }
  host.end(all, time_left(deadline));
  left.hand_on();
}

/// WorkerProcess serves one driver after the other.
class WorkerProcess {
 public:
  WorkerProcess(const WorkerProcessOptions& options,
                std::shared_ptr<const ActorTypes> types,
                std::shared_ptr<const TemporaryCredentials> handed_over)
      : options_(options),
        types_(std::move(types)),
        handed_over_(std::move(handed_over)),
        credentials_(
            load_worker_credentials(handed_over_ ? handed_over_->dir() : options.credentials)),
        told_(options.bind.empty() ? "" : address_of_interface(options.bind)) {}

  /// Joins the driver that listens at the address within `patience`, and serves it to its end.
  /// Returns the reason of the end. Errors: those of run_worker_process.
  std::string serve(std::chrono::milliseconds patience) {
    const Deadline deadline = std::chrono::steady_clock::now() + patience;
    const std::string driver = find_listener(options_.host, options_.port, patience);
    const std::string bind = told_.empty() ? address_towards(driver) : told_;
    ActorHost& host = open_control_plane(credentials_, options_.heartbeat);
    const AdmissionActor admission =
        find_admission(host, driver, options_.port, time_left(deadline));
    DataPortOptions port = ending(handed_over_);
    port.bind = any_port_of(bind);
    port.shared_memory = MemoryFile::usual_limit();
    port.silence = options_.heartbeat.silence;
    port.when_cut = [&host, admission](const std::string& key, const Error& why) {  // keeps WP-3
      tell_cut(host, admission, key, why);
    };
    const auto values = std::make_shared<StepValues>();
    const auto ranks = std::make_shared<std::vector<Worker>>();  // of the worker host's actor
    const auto process = std::make_shared<ServedProcess>(ServedProcess{
        .host = host,
        .port = DataPort::open(port),
        .types = types_,
        .values = values,
        .start_rank =
            [&host, values, ranks, left = left_](Rank rank, std::shared_ptr<Transport> end) {
              return ranks->emplace_back(
                  launch_thread(host, rank, std::move(end), values, received_setup, left));
            },
        .ended = {},
        .taken = [left = left_] { left->drop(); }});
    const Join join{.place = options_.place,
                    .incarnation = options_.incarnation,
                    .port = process->port->address(),
                    .process = getpid(),
                    .host = host_name(),
                    .processor = processor_of_this_process()};
    (void)join_cluster(process,
                       admission,
                       join,
                       deadline,
                       fmt::format("the driver at {} has not admitted this worker within {} ms",
                                   host_and_port(options_.host, options_.port),
                                   patience.count()))
        .get();
    has_served_ = true;
    const auto standstills = watch_standstills();  // logs standstills of this process
    const std::string why = process->ended.future().get();
    outlives_ = false;
    if (why == kConnectionLost && options_.outlive.count() > 0) {
      end_ranks(host, *ranks, *left_);
      outlives_ = ranks->empty() || !left_->is_empty();
    }
    return why;
  }

  [[nodiscard]] bool has_served() const { return has_served_; }
  /// Returns whether to serve another driver.
  [[nodiscard]] bool outlives() const { return outlives_; }

 private:
  const WorkerProcessOptions& options_;
  const std::shared_ptr<const ActorTypes> types_;
  const std::shared_ptr<const TemporaryCredentials> handed_over_;
  const Credentials credentials_;
  const std::string told_;  ///< the address of options.bind
  const std::shared_ptr<LeftCopies> left_ = std::make_shared<LeftCopies>();
  bool has_served_ = false, outlives_ = false;
};

/// Serves a driver, and those that follow it in time. Returns the reason of the last end.
std::string serve_drivers(WorkerProcess& process, const WorkerProcessOptions& options) {
  std::chrono::milliseconds patience = options.patience;
  Deadline deadline;  // for another driver
  for (;;) {
    try {
      const std::string why = process.serve(patience);
      if (!process.outlives()) {
        return why;
      }
      log(Level::Warning,
          "the driver is gone, and this worker waits for another one",
          {{"at", host_and_port(options.host, options.port)}, {"ms", options.outlive.count()}});
      patience = options.outlive;
      deadline = std::chrono::steady_clock::now() + patience;
    } catch (const Error& error) {
      if (!process.has_served()) {
        throw;
      }
      patience = time_left(deadline) - kTryAgain;
      if (patience.count() <= 0) {
        log(Level::Warning, "no other driver has come", {{"why", error.what()}});
        return kConnectionLost;
      }
      std::this_thread::sleep_for(kTryAgain);
    }
  }
}

}  // namespace

int run_worker_process(const WorkerProcessOptions& options,
                       std::shared_ptr<const ActorTypes> types) {
  connect_nccl_early();  // before there are threads
  std::shared_ptr<const TemporaryCredentials> handed_over;
  if (options.credentials == kCredentialsFromLifeline) {
    handed_over = TemporaryCredentials::received(options.lifeline);
  }
  const RemovedAtEnd removed(handed_over);
  if (options.lifeline >= 0) {
    watch(options.lifeline, handed_over);
  }
  WorkerProcess process(options, std::move(types), handed_over);
  const std::string why = serve_drivers(process, options);
  if (why == kConnectionLost && options.lifeline >= 0) {
    log(Level::Info, "worker ends", {{"why", why}});
    end_now(handed_over, kDriverLost);
  }
  return why == kReplaced ? kToBeReplaced : 0;
}

}  // namespace stagecraft
