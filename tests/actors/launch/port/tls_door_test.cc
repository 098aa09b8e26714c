/// Tests the port of a driver with CAF's own clients, and with a thief who has a worker's
/// certificate and speaks CAF's protocol freely.
#include "stagecraft/actors/launch/port/tls_door.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <caf/all.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/io/all.hpp>
#include <caf/openssl/all.hpp>
#include <netinet/in.h>
#include <openssl/ssl.h>

#include "stagecraft/actors/security/credentials.h"
#include "stagecraft/actors/security/temporary_credentials.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using caf::io::basp::header;
using caf::io::basp::message_type;

constexpr auto kDoorPatience = 60s;

/// An actor system with credentials.
class Doorside {
 public:
  explicit Doorside(const std::string& dir) : config_(load_credentials(dir)), system_(config_) {}
  ~Doorside() {
    for (const caf::actor& actor : spawned) {
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    }
  }
  Doorside(const Doorside&) = delete;
  Doorside& operator=(const Doorside&) = delete;

  [[nodiscard]] caf::actor_system& system() { return system_; }

  std::vector<caf::actor> spawned;

 private:
  struct Config : caf::actor_system_config {
    explicit Config(const Credentials& credentials) {
      openssl_certificate = credentials.certificate;
      openssl_key = credentials.key;
      openssl_cafile = credentials.authority;
      set("middleman.workers", std::size_t{0});
      set("scheduler.max-threads", std::size_t{2});
      set("middleman.heartbeat-interval", caf::timespan(5s));
      set("middleman.connection-timeout", caf::timespan(2 * kDoorPatience));  // cuts off no thief
      load<caf::io::middleman>();
      load<caf::openssl::manager>();
    }
  } config_;
  caf::actor_system system_;
};

/// A driver whose actor answers a number by its double, and keeps the actor of each sender.
struct DoorScene {
  const TemporaryCredentials credentials{3};
  const std::shared_ptr<PeerNodes> nodes = std::make_shared<PeerNodes>();
  Doorside driver{credentials.dir() + "/driver"};
  caf::scoped_actor self{driver.system()};
  std::uint16_t port = 0;

  DoorScene() {
    const auto door = open_tls_door(driver.system(), "127.0.0.1", 0, nodes);
    REQUIRE(door);
    port = (*door)->port();
    const caf::actor desk = driver.system().spawn(
        [to = caf::actor_cast<caf::actor>(self)](caf::event_based_actor* me) -> caf::behavior {
          return {[me, to](int number) {
            me->send(to, caf::actor_cast<caf::actor>(me->current_sender()));
            return 2 * number;
          }};
        });
    driver.spawned.push_back(desk);
    caf::anon_send(
        driver.system().middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP")),
        caf::publish_atom::value,
        *door,
        port,
        caf::actor_cast<caf::strong_actor_ptr>(desk),
        driver.system().message_types(desk));
  }

  [[nodiscard]] std::string folder(const std::string& member) const {
    return credentials.dir() + "/" + member;
  }
  /// Has an actor of the worker call the driver. Returns it as the driver knows it; nothing if the
  /// worker is not let in.
  caf::actor call_from(Doorside& worker) {
    const auto desk = caf::openssl::remote_actor(worker.system(), "127.0.0.1", port);
    if (!desk) {
      return {};
    }
    const auto doubled = std::make_shared<std::promise<int>>();
    worker.spawned.push_back(
        worker.system().spawn([desk = *desk, doubled](caf::event_based_actor* me) -> caf::behavior {
          me->request(desk, caf::infinite, 21)
              .then([doubled](int answer) { doubled->set_value(answer); },
                    [doubled](const caf::error&) { doubled->set_value(-1); });
          return {[](const std::string& text) { return text + "!"; }};
        }));
    CHECK(doubled->get_future().get() == 42);
    caf::actor known;
    self->receive([&](const caf::actor& sender) { known = sender; },
                  caf::after(kDoorPatience) >> [] {});
    REQUIRE(known);
    return known;
  }
  [[nodiscard]] std::string answer_of(const caf::actor& worker) {
    std::string text = "none";
    self->request(worker, kDoorPatience, std::string("here"))
        .receive([&](const std::string& answer) { text = answer; }, [](const caf::error&) {});
    return text;
  }
};

/// Holds the certificate and key of a worker, and says what it likes.
class Thief {
 public:
  Thief(const Credentials& stolen, std::uint16_t port)
      : context_(SSL_CTX_new(TLS_client_method())),
        socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    REQUIRE(SSL_CTX_use_certificate_chain_file(context_, stolen.certificate.c_str()) == 1);
    REQUIRE(SSL_CTX_use_PrivateKey_file(context_, stolen.key.c_str(), SSL_FILETYPE_PEM) == 1);
    const struct timeval patience { .tv_sec = kDoorPatience.count(), .tv_usec = 0 };
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(port);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(socket_, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0);
    session_ = SSL_new(context_);
    SSL_set_fd(session_, socket_);
    REQUIRE(SSL_connect(session_) == 1);
  }
  ~Thief() {
    SSL_free(session_);
    close(socket_);
    SSL_CTX_free(context_);
  }
  Thief(const Thief&) = delete;
  Thief& operator=(const Thief&) = delete;

  /// `inside`: values of the contents.
  template <class... Ts>
  void say(message_type kind,
           std::uint8_t flags,
           std::uint64_t data,
           caf::actor_id from,
           caf::actor_id to,
           const Ts&... inside) {
    const std::string contents = bytes_of(inside...);
    header head(kind, flags, static_cast<std::uint32_t>(contents.size()), data, from, to);
    const std::string bytes = bytes_of(head) + contents;
    REQUIRE(SSL_write(session_, bytes.data(), static_cast<int>(bytes.size())) > 0);
  }
  /// Returns whether the driver ends the connection.
  [[nodiscard]] bool is_cut_off() {
    std::array<char, 4096> heard{};
    int count = 0;
    errno = 0;
    while ((count = SSL_read(session_, heard.data(), static_cast<int>(heard.size()))) > 0) {
    }
    return SSL_get_error(session_, count) != SSL_ERROR_WANT_READ && errno != EAGAIN;
  }

 private:
  template <class... Ts>
  static std::string bytes_of(const Ts&... values) {
    std::vector<char> bytes;
    caf::binary_serializer sink(static_cast<caf::execution_unit*>(nullptr), bytes);
    REQUIRE_FALSE(sink(values...));
    return {bytes.begin(), bytes.end()};
  }

  SSL_CTX* context_;
  int socket_;
  SSL* session_ = nullptr;
};

TEST_CASE("workers and their driver ask each other, and learn of each other's end",
          "[actors][launch]") {
  DoorScene scene;
  auto first = std::make_unique<Doorside>(scene.folder("worker-0"));
  Doorside second(scene.folder("worker-1"));
  const caf::actor one = scene.call_from(*first), two = scene.call_from(second);
  REQUIRE((one && two));
  CHECK(scene.nodes->worker_at(one->node()) == "worker-0");
  CHECK(scene.nodes->worker_at(two->node()) == "worker-1");
  for (int i = 0; i < 20; ++i) {
    CHECK(scene.answer_of(one) == "here!");
    CHECK(scene.answer_of(two) == "here!");
  }
  scene.self->monitor(one);
  scene.self->monitor(two);
  first.reset();
  caf::anon_send_exit(second.spawned.back(), caf::exit_reason::user_shutdown);
  int ended = 0;
  scene.self->receive_for(ended, 2)([](const caf::down_msg&) {});
  CHECK(scene.call_from(second));
}

TEST_CASE("the driver's certificate is no worker's", "[actors][launch][hostile]") {
  DoorScene scene;
  Doorside worker(scene.folder("worker-0"));
  const caf::actor known = scene.call_from(worker);
  REQUIRE(known);
  Doorside false_worker(scene.folder("driver"));
  CHECK_FALSE(scene.call_from(false_worker));
  CHECK(scene.answer_of(known) == "here!");
}

TEST_CASE("a worker's certificate does not make another worker (NG-1, NG-2, NG-3)",
          "[actors][launch][hostile]") {
  DoorScene scene;
  Doorside worker(scene.folder("worker-0"));
  const caf::actor known = scene.call_from(worker);
  REQUIRE(known);
  const caf::node_id there = known->node(), here = scene.driver.system().node();
  caf::node_id::default_data::host_id_type host{};
  host.fill(7);
  const caf::node_id own = caf::make_node_id(99, host);
  Thief thief(load_credentials(scene.folder("worker-1")), scene.port);
  SECTION("it takes over the node") {
    thief.say(message_type::client_handshake, header::select_connection_flag, 0, 0, 0, there);
  }
  SECTION("it says that an actor of the worker has ended") {
    thief.say(message_type::client_handshake, 0, 0, 0, 0, own);
    thief.say(message_type::down_message, 0, 0, known->id(), 0, there, here, caf::error());
  }
  SECTION("it speaks in the worker's name") {
    thief.say(message_type::client_handshake, 0, 0, 0, 0, own);
    thief.say(message_type::routed_message, 0, 0, known->id(), 1, there, here);
  }
  SECTION("it gives the worker orders through the driver") {
    thief.say(message_type::client_handshake, 0, 0, 0, 0, own);
    thief.say(message_type::routed_message, 0, 0, 1, known->id(), own, there);
  }
  SECTION("it answers for the worker") {
    thief.say(message_type::client_handshake, 0, 0, 0, 0, own);
    const auto answer = caf::message_id{1}.response_id().integer_value();
    thief.say(message_type::direct_message, 0, answer, 1, scene.self->id(), 7);
  }
  CHECK(thief.is_cut_off());
  CHECK(scene.answer_of(known) == "here!");
  CHECK(scene.nodes->worker_at(there) == "worker-0");
}

}  // namespace
}  // namespace stagecraft
