/// Tests CAF 0.17 over mutual TLS with the files that are made here: members of one cluster meet,
/// others are refused while the port keeps serving, and a renewed certificate counts without a
/// restart.

#include <chrono>
#include <string>

#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <caf/openssl/all.hpp>

#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/actors/security/credentials.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {
namespace {

using namespace std::chrono_literals;

struct Config : caf::actor_system_config {
  explicit Config(const Credentials& credentials) {
    openssl_certificate = credentials.certificate;
    openssl_key = credentials.key;
    openssl_cafile = credentials.authority;
    set("middleman.workers", std::size_t{0});
    set("scheduler.max-threads", std::size_t{2});
    load<caf::io::middleman>();
    load<caf::openssl::manager>();
  }
};

class Process {
 public:
  explicit Process(const Credentials& credentials) : config_(credentials), system_(config_) {}

  /// Publishes an actor that doubles numbers, on loopback. Returns the port.
  std::uint16_t serve() {
    const caf::actor doubler = system_.spawn([](caf::event_based_actor* self) -> caf::behavior {
      self->set_default_handler(caf::drop);
      return {[](int number) { return 2 * number; }};
    });
    const auto port = caf::openssl::publish(doubler, 0, "127.0.0.1");
    REQUIRE(port);
    served_ = doubler;
    return *port;
  }

  /// Returns whether the server at `port` lets this process in and answers it.
  bool is_let_in(std::uint16_t port) {
    const auto server = caf::openssl::remote_actor(system_, "127.0.0.1", port);
    if (!server) {
      return false;
    }
    int answer = 0;
    const caf::scoped_actor self(system_);
    self->request(*server, 60s, 21)
        .receive([&](int doubled) { answer = doubled; }, [](const caf::error&) {});
    return answer == 42;
  }

  ~Process() {
    if (served_) {
      caf::anon_send_exit(served_, caf::exit_reason::user_shutdown);
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

 private:
  Config config_;
  caf::actor_system system_;
  caf::actor served_;
};

const CredentialsRequest kTwo{.members = 2, .cluster = "alike", .durable = false};

}  // namespace

TEST_CASE("members of one cluster meet over mutual TLS, those of another are refused",
          "[security][tls]") {
  const TemporaryFolder folder;
  const std::string ours = folder.path() + "/ours", theirs = folder.path() + "/theirs";
  make_credentials(ours, kTwo);
  make_credentials(theirs, kTwo);  // of the same name, which proves nothing
  Process driver(load_credentials(ours + "/driver"));
  const std::uint16_t port = driver.serve();

  CHECK(Process(load_credentials(ours + "/worker-0")).is_let_in(port));
  CHECK_FALSE(Process(load_credentials(theirs + "/worker-0")).is_let_in(port));

  // It shows a certificate that the server trusts, and trusts the server's, but has no key for it.
  Credentials mixed = load_credentials(theirs + "/worker-0");
  mixed.authority = ours + "/ca.pem";
  CHECK_FALSE(Process(mixed).is_let_in(port));

  // It trusts another authority than the server shows.
  mixed = load_credentials(ours + "/worker-1");
  mixed.authority = theirs + "/ca.pem";
  CHECK_FALSE(Process(mixed).is_let_in(port));

  CHECK(Process(load_credentials(ours + "/worker-1")).is_let_in(port));  // the port still serves
}

TEST_CASE(
    "TLS refuses a worker that poses as the driver, and a driver that poses as a worker (AU-1)",
    "[security][tls]") {
  const TemporaryFolder folder;
  const std::string dir = folder.path() + "/cluster";
  make_credentials(dir, kTwo);
  Process thief(load_credentials(dir + "/worker-0"));
  CHECK_FALSE(Process(load_credentials(dir + "/worker-1")).is_let_in(thief.serve()));
  Process driver(load_credentials(dir + "/driver"));
  const std::uint16_t port = driver.serve();
  CHECK_FALSE(Process(load_credentials(dir + "/driver")).is_let_in(port));
  CHECK(Process(load_credentials(dir + "/worker-1")).is_let_in(port));
}

TEST_CASE(
    "an expired certificate is refused at either end until it is renewed, without a restart "
    "(CC-2)",
    "[security][tls]") {
  const TemporaryFolder folder;
  const std::string dir = folder.path() + "/cluster";
  make_credentials(dir, kTwo);
  const auto yesterday = std::chrono::system_clock::now() - 24h;
  Process driver(load_credentials(dir + "/driver"));
  const std::uint16_t port = driver.serve();
  Process worker(load_credentials(dir + "/worker-0"));

  issue_member(dir, "worker-0", 1h, yesterday);
  CHECK_FALSE(worker.is_let_in(port));
  issue_member(dir, "worker-0", 1h);
  issue_member(dir, "driver", 1h, yesterday);
  CHECK_FALSE(worker.is_let_in(port));
  issue_member(dir, "driver", 1h);
  CHECK(worker.is_let_in(port));

  // An open connection is not checked again.
  issue_member(dir, "worker-0", 1h, yesterday);
  CHECK(worker.is_let_in(port));
}

}  // namespace stagecraft::tests
