#include "stagecraft/actors/launch/worker/worker_process.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/executor/device/cuda_library.h"
#include "stagecraft/actors/executor/device/processor.h"
#include "stagecraft/actors/launch/network/find_listener.h"
#include "stagecraft/actors/launch/network/local_address.h"
#include "stagecraft/actors/launch/threads.h"
#include "stagecraft/actors/launch/worker/end_now.h"
#include "stagecraft/actors/launch/worker/worker_host.h"
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
  const Credentials credentials =
      load_worker_credentials(handed_over ? handed_over->dir() : options.credentials);
  const std::string told = options.bind.empty() ? "" : address_of_interface(options.bind);
  const Deadline deadline = std::chrono::steady_clock::now() + options.patience;
  const std::string driver = find_listener(options.host, options.port, options.patience);
  const std::string bind = told.empty() ? address_towards(driver) : told;
  ActorHost& host = open_control_plane(credentials, options.heartbeat);
  const AdmissionActor admission = find_admission(host, driver, options.port, time_left(deadline));
  DataPortOptions port = ending(handed_over);
  port.bind = any_port_of(bind);
  port.shared_memory = MemoryFile::usual_limit();
  port.silence = options.heartbeat.silence;
  port.when_cut = [&host, admission](const std::string& key, const Error& why) {  // keeps WP-3
    tell_cut(host, admission, key, why);
  };
  const auto values = std::make_shared<StepValues>();
  const auto process = std::make_shared<ServedProcess>(
      ServedProcess{.host = host,
                    .port = DataPort::open(port),
                    .types = std::move(types),
                    .values = values,
                    .start_rank =
                        [&host, values](Rank rank, std::shared_ptr<Transport> end) {
                          return launch_thread(host, rank, std::move(end), values, received_setup);
                        },
                    .ended = {}});
  const Join join{.place = options.place,
                  .incarnation = options.incarnation,
                  .port = process->port->address(),
                  .process = getpid(),
                  .host = host_name(),
                  .processor = processor_of_this_process()};
  (void)join_cluster(process,
                     admission,
                     join,
                     deadline,
                     fmt::format("the driver at {} has not admitted this worker within {} ms",
                                 host_and_port(options.host, options.port),
                                 options.patience.count()))
      .get();
  const auto standstills = watch_standstills();  // logs standstills of this process
  const std::string why = process->ended.future().get();
  if (why == kConnectionLost && options.lifeline >= 0) {
    log(Level::Info, "worker ends", {{"why", why}});
    end_now(handed_over, kDriverLost);
  }
  return why == kReplaced ? kToBeReplaced : 0;
}

}  // namespace stagecraft
