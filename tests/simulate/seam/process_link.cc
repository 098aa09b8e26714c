#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "stagecraft/actors/launch/port/control_port.h"
#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/actors/security/temporary_credentials.h"
#include "stagecraft/tests/simulate/seam/link_forms.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/environment_variable.h"
#include "stagecraft/tests/support/tcp_relay.h"

namespace stagecraft::simulation {
namespace {

/// The port of the listener and the folder of the credentials, for the other process.
constexpr const char* kOther = "STAGECRAFT_TESTS_OTHER_PROCESS";

/// Short, so that silence is found soon; long enough for a busy host.
constexpr Heartbeat kHeartbeat{.interval = std::chrono::milliseconds(250),
                               .silence = std::chrono::milliseconds(2500)};

/// This process's end.
struct HereEnd {
  const TemporaryCredentials credentials{1};
  ActorHost& host = open_control_plane(load_credentials(credentials.dir() + "/driver"), kHeartbeat);
  const std::shared_ptr<PeerNodes> nodes = std::make_shared<PeerNodes>();
};

HereEnd& here_end() {
  static HereEnd end;
  return end;
}

/// A started process, and the way to it.
struct OtherProcess {
  OtherProcess(std::uint16_t port, const std::string& credentials) : relay(port) {
    const tests::EnvironmentVariable told(kOther, std::to_string(relay.port()) + " " + credentials);
    command = std::make_unique<tests::RunningCommand>(
        std::vector<std::string>{"/proc/self/exe", "the other process of a link"});
  }
  tests::TcpRelay relay;
  std::unique_ptr<tests::RunningCommand> command;
};

/// A listener at a port of this process, also if its case fails.
class Published {
 public:
  Published(HereEnd& here, const caf::actor& listener)
      : host_(here.host),
        listener_(caf::actor_cast<AdmissionActor>(listener)),
        port_(publish(host_, listener_, here.nodes, "127.0.0.1")) {}
  ~Published() { unpublish(host_, listener_, port_); }
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  ActorHost& host_;
  const AdmissionActor listener_;
  const std::uint16_t port_;
};

}  // namespace

void over_tls(int /*time*/, const std::function<void(LinkUnderTest&)>& run) {
  HereEnd& here = here_end();
  std::vector<std::unique_ptr<OtherProcess>> all;
  std::optional<Published> published;
  LinkUnderTest link{.here = here.host.system(), .silence = kHeartbeat.silence};
  link.start = [&](const caf::actor& listener, Notes& notes) {
    if (!published) {
      published.emplace(here, listener);
    }
    const auto greetings = [](const std::vector<Note>& heard) {
      std::vector<caf::strong_actor_ptr> from;
      for (const Note& note : heard) {
        if (note.kind == Note::Kind::Number && note.number == kGreeting) {
          from.push_back(note.sender);
        }
      }
      return from;
    };
    const std::size_t before = greetings(notes.all()).size();
    all.push_back(std::make_unique<OtherProcess>(published->port(),
                                                 here.credentials.dir() + "/" + worker_name(0)));
    REQUIRE(notes.wait([&](const auto& heard) { return greetings(heard).size() > before; }));
    return caf::actor_cast<caf::actor>(greetings(notes.all()).back());
  };
  const auto send_signal = [&](int signal) {
    return [&all, signal] { all.back()->command->send_signal(signal); };
  };
  link.kill = send_signal(SIGKILL);
  link.stop = send_signal(SIGSTOP);
  link.go_on = send_signal(SIGCONT);
  link.cut = [&] { all.back()->relay.cut(); };
  link.hold = [&] { all.back()->relay.hold(); };
  run(link);
}

bool run_other_process() {
  const char* const told = std::getenv(kOther);
  if (told == nullptr) {
    return false;
  }
  std::istringstream words(told);
  std::uint16_t port = 0;
  std::string folder;
  words >> port >> folder;
  ActorHost& host = open_control_plane(load_credentials(folder), kHeartbeat);
  const auto listener = caf::actor_cast<caf::actor>(
      find_admission(host, "127.0.0.1", port, std::chrono::seconds(60)));
  listener->attach_functor([] { _exit(0); });
  host.system().spawn(
      root, listener, std::function<void(const caf::actor&)>([](const caf::actor&) {}));
  while (true) {
    pause();
  }
}

}  // namespace stagecraft::simulation
