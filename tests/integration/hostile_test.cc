/// Tests outsiders at the open ports of a run, and processes of another build: a refused peer
/// changes nothing for admitted ones.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include <caf/io/all.hpp>
#include <caf/openssl/publish.hpp>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>

#include "stagecraft/actors/launch/fleet/fleet.h"
#include "stagecraft/actors/launch/port/build_fingerprint.h"
#include "stagecraft/actors/launch/port/control_port.h"
#include "stagecraft/actors/launch/port/file_limit.h"
#include "stagecraft/actors/launch/port/handshake_bound.h"
#include "stagecraft/actors/launch/port/tls_door.h"
#include "stagecraft/actors/launch/worker/worker_process.h"
#include "stagecraft/actors/security/temporary_credentials.h"
#include "stagecraft/tests/futures/transport/zmq/raw_peer.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using namespace std::chrono_literals;

constexpr auto kPatience = 60s;

/// Holds a connection to a port of this host.
class Connection {
 public:
  Connection() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    REQUIRE(socket_ >= 0);
    const struct timeval patience { .tv_sec = kPatience.count(), .tv_usec = 0 };
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  explicit Connection(std::uint16_t port) : Connection() { open(port); }
  Connection(Connection&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  Connection& operator=(Connection&&) = delete;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    if (socket_ >= 0) {
      close(socket_);
    }
  }
  void open(std::uint16_t port) const {
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(port);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(socket_, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0);
  }
  void say(const std::string& bytes) const {
    static_cast<void>(send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  [[nodiscard]] int socket_number() const { return socket_; }

 private:
  int socket_;
};

/// Is a client of TLS; without credentials it has none to show.
class TlsClient {
 public:
  explicit TlsClient(const std::optional<Credentials>& shown, int newest = TLS1_3_VERSION)
      : context_(SSL_CTX_new(TLS_client_method())) {
    REQUIRE(SSL_CTX_set_max_proto_version(context_, newest) == 1);
    if (shown) {
      REQUIRE(SSL_CTX_use_certificate_chain_file(context_, shown->certificate.c_str()) == 1);
      REQUIRE(SSL_CTX_use_PrivateKey_file(context_, shown->key.c_str(), SSL_FILETYPE_PEM) == 1);
    }
  }
  ~TlsClient() { SSL_CTX_free(context_); }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  /// Returns whether the other end, which speaks first, sends anything after the handshake.
  [[nodiscard]] bool is_let_in(const Connection& connection) const {
    // A refusal raises SIGPIPE on the writing thread. A thread of its own blocks it, so that the
    // process still ends by one that the library raises.
    return std::async(std::launch::async,
                      [&] {
                        sigset_t pipe;
                        sigemptyset(&pipe);
                        sigaddset(&pipe, SIGPIPE);
                        pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
                        SSL* const session = SSL_new(context_);
                        SSL_set_fd(session, connection.socket_number());
                        char first = 0;
                        const bool heard =
                            SSL_connect(session) == 1 && SSL_read(session, &first, 1) == 1;
                        SSL_free(session);
                        return heard;
                      })
        .get();
  }
  [[nodiscard]] std::string hello() const {
    SSL* const session = SSL_new(context_);
    SSL_set_bio(session, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_connect(session);
    std::string bytes(4096, '\0');
    bytes.resize(static_cast<std::size_t>(
        BIO_read(SSL_get_wbio(session), bytes.data(), static_cast<int>(bytes.size()))));
    SSL_free(session);
    return bytes;
  }

 private:
  SSL_CTX* context_;
};

std::string argument_of(std::int64_t process, const std::string& option) {
  const std::string words = read_text_file("/proc/" + std::to_string(process) + "/cmdline");
  const std::size_t at = words.find('\0' + option + '\0');
  REQUIRE(at != std::string::npos);
  return words.c_str() + at + option.size() + 2;
}

std::uint16_t port_of(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

/// Returns the ports at which this process listens.
std::vector<std::uint16_t> own_ports() {
  std::vector<std::uint16_t> ports;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int number = std::stoi(entry.path().filename());
    int listens = 0;
    socklen_t size = sizeof listens;
    sockaddr_in here{};
    socklen_t length = sizeof here;
    if (getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
        getsockname(number, reinterpret_cast<sockaddr*>(&here), &length) == 0 &&
        here.sin_family == AF_INET) {
      ports.push_back(ntohs(here.sin_port));
    }
  }
  return ports;
}

/// Trains on two processes under attack.
struct Run {
  TemporaryFolder folder;
  Program program = make_program({.stages = 2});
  Schedule schedule = make_schedule("1f1b", program);
  Cluster cluster = Cluster::spawn(2);
  Trainer trainer{cluster, program, schedule, AdamW{.lr = 1e-2}, {.seed = 5}};
  std::int64_t steps = 0;
  std::uint16_t control = port_of(argument_of(cluster.workers()[0].process, "--join"));
  Credentials member = load_credentials(argument_of(cluster.workers()[0].process, "--credentials"));

  [[nodiscard]] std::vector<std::uint16_t> ports() const {
    std::vector<std::uint16_t> all = own_ports();
    for (const WorkerPlace& worker : cluster.workers()) {
      all.push_back(port_of(worker.address));
    }
    return all;
  }
  template <class Attack>
  void during_a_step(Attack attack) {
    const StepFuture step = step_of(trainer, steps++);
    attack();
    CHECK(step.get().step == steps);
  }
  [[nodiscard]] bool lets_members_in() const {
    return TlsClient(member).is_let_in(Connection(control));
  }
  /// Checks that a worker can still join and be reached, and that no result has changed.
  void check_unharmed() {
    CHECK(lets_members_in());
    const std::string file = folder.path() + "/weights.ckpt";
    trainer.save(file);
    cluster.replace(Rank(1));
    trainer.load(file);
    during_a_step([] {});
    Trainer undisturbed(Cluster::local(2), program, schedule, AdamW{.lr = 1e-2}, {.seed = 5});
    for (std::int64_t i = 0; i < steps; ++i) {
      (void)step_of(undisturbed, i).get();
    }
    CHECK(same_bits(trainer.state_dict(), undisturbed.state_dict()));
  }
};

std::string random_bytes(std::size_t size) {
  std::mt19937 random(7);
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random());
  }
  return bytes;
}

/// Ends a plaintext port of CAF 0.17: a handshake without payload.
std::string bare_header(char operation) {
  std::string header(32, '\0');
  header[0] = operation;
  header[15] = 3;  // the version of its protocol
  return header;
}

TEST_CASE("bytes of strangers end their own connections only",
          "[integration][processes][hostile]") {
  Run run;
  const TlsClient nobody(std::nullopt);
  const std::string hello = nobody.hello();
  REQUIRE(hello.size() > 100);
  std::vector<Connection> half;
  for (const std::string& bytes : {random_bytes(65536),
                                   random_bytes(9),
                                   std::string("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                                   bare_header(0),
                                   bare_header(1),
                                   hello.substr(0, hello.size() / 2),
                                   hello + random_bytes(1000)}) {
    run.during_a_step([&] {
      for (const std::uint16_t port : run.ports()) {
        Connection(port).say(bytes);  // and closes
        half.emplace_back(port).say(bytes);
      }
    });
    CHECK(run.lets_members_in());
  }
  run.check_unharmed();
}

TEST_CASE("nobody comes in without a certificate of the cluster",
          "[integration][processes][hostile]") {
  Run run;
  const TemporaryCredentials other(1);
  const Credentials foreign = load_credentials(other.dir() + "/worker-0");
  run.during_a_step([&] {
    CHECK_FALSE(TlsClient(std::nullopt).is_let_in(Connection(run.control)));
    CHECK_FALSE(TlsClient(foreign).is_let_in(Connection(run.control)));
    CHECK_FALSE(TlsClient(run.member, TLS1_2_VERSION).is_let_in(Connection(run.control)));
    CHECK(TlsClient(run.member, TLS1_3_VERSION).is_let_in(Connection(run.control)));
  });
  run.during_a_step([&] {
    ActorHost& stranger = open_control_plane(foreign, {});
    CHECK_THROWS_WITH((void)find_admission(stranger, "127.0.0.1", run.control, kPatience),
                      ContainsSubstring("both are of the same cluster"));
  });
  run.during_a_step([&] {
    struct Plain : caf::actor_system_config {
      Plain() {
        set("middleman.heartbeat-interval", caf::timespan(100ms));
        set("middleman.connection-timeout", caf::timespan(500ms));
        load<caf::io::middleman>();
      }
    } config;
    caf::actor_system system(config);
    CHECK_FALSE(system.middleman().remote_actor("127.0.0.1", run.control));
  });
  run.check_unharmed();
}

/// Holds another process's connections, for as long as it lives. Each says these bytes and nothing
/// more.
class Crowd {
 public:
  Crowd(std::uint16_t port, int size, const std::string& bytes = "")
      : said_(folder_.write("said", bytes)),
        shell_({"bash",
                "-c",
                "ulimit -n $(ulimit -Hn); for ((i = 0; i < $2; i++)); do "
                "exec {c}<>/dev/tcp/127.0.0.1/$1; [ ! -s \"$3\" ] || cat \"$3\" >&$c 2>&-; done; "
                "echo here; exec sleep 600",
                "crowd",
                std::to_string(port),
                std::to_string(size),
                said_}) {
    REQUIRE(shell_.wait_for_output("here"));
  }

 private:
  const TemporaryFolder folder_;
  const std::string said_;
  RunningCommand shell_;
};

/// Lets a process open only this many more files.
class FileLimit {
 public:
  FileLimit(pid_t process, rlim_t more) : process_(process) {
    const std::string open = "/proc/" + std::to_string(process) + "/fd";
    std::set<rlim_t> taken;
    for (const auto& entry : std::filesystem::directory_iterator(open)) {
      taken.insert(std::stoul(entry.path().filename()));
    }
    rlim_t all = 0;
    for (rlim_t free = 0; free < more; ++all) {
      free += taken.count(all) == 0 ? 1 : 0;
    }
    REQUIRE(prlimit(process, RLIMIT_NOFILE, nullptr, &before_) == 0);
    const struct rlimit low { .rlim_cur = all, .rlim_max = before_.rlim_max };
    REQUIRE(prlimit(process, RLIMIT_NOFILE, &low, nullptr) == 0);
  }
  ~FileLimit() { prlimit(process_, RLIMIT_NOFILE, &before_, nullptr); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  pid_t process_;
  struct rlimit before_ {};
};

bool has_free_file() {
  const int number = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (number >= 0) {
    close(number);
  }
  return number >= 0;
}

/// Returns the connections that this process accepted at one of its ports.
std::size_t taken_at(std::uint16_t port) {
  std::size_t taken = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int number = std::stoi(entry.path().filename());
    int listens = 0;
    socklen_t size = sizeof listens;
    sockaddr_in here{};
    socklen_t length = sizeof here;
    taken += getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens == 0 &&
                     getsockname(number, reinterpret_cast<sockaddr*>(&here), &length) == 0 &&
                     here.sin_family == AF_INET && ntohs(here.sin_port) == port
                 ? 1
                 : 0;
  }
  return taken;
}

TEST_CASE("mute connections are bounded, and cost nothing while they wait (TD-3, TLS-3)",
          "[integration][processes][hostile]") {
  Run run;
  run.during_a_step([] {});
  const Crowd crowd(run.control, static_cast<int>(kMostWaiting) + 100);
  CHECK(run.lets_members_in());  // the last to come, after all others were accepted
  CHECK(eventually([&] { return taken_at(run.control) <= kMostWaiting + 4; }));
  const std::clock_t begin = std::clock();
  for (int i = 0; i < 20; ++i) {
    CHECK(run.lets_members_in());
  }
  CHECK((std::clock() - begin) / CLOCKS_PER_SEC < 5);
  run.check_unharmed();
}

/// Returns the beginning of a ClientHello that announces this many bytes, with `sent` of them.
std::string hello_of(std::size_t announced, std::size_t sent) {
  const auto byte = [](std::size_t value) { return static_cast<char>(value & 0xffU); };
  std::string message{'\x01', byte(announced >> 16U), byte(announced >> 8U), byte(announced)};
  message += std::string(sent, 'x');
  const std::string header{
      '\x16', '\x03', '\x01', byte(message.size() >> 8U), byte(message.size())};
  return header + message;
}

std::int64_t resident_mebibytes() {
  std::ifstream status("/proc/self/status");
  std::int64_t kibibytes = 0;
  for (std::string word; status >> word && word != "VmRSS:";) {
  }
  status >> kibibytes;
  return kibibytes / 1024;
}

TEST_CASE("a hello that announces more than a member's ends its connection at once (TLS-4)",
          "[integration][processes][hostile]") {
  Run run;
  run.during_a_step([] {});
  const std::int64_t before = resident_mebibytes();
  const Crowd crowd(run.control, static_cast<int>(kMostWaiting) + 100, hello_of(131'396, 9000));
  CHECK(eventually([&] { return taken_at(run.control) <= 4; }));
  CHECK(resident_mebibytes() < before + 16);
  run.check_unharmed();
}

TEST_CASE("strangers who hold the longest hello that is heard take a bounded memory (TLS-4)",
          "[integration][processes][hostile]") {
  Run run;
  run.during_a_step([] {});
  const std::int64_t before = resident_mebibytes();
  const Crowd crowd(run.control,
                    static_cast<int>(kMostWaiting) + 300,
                    hello_of(kMostOfHandshakeMessage, kMostOfHandshakeMessage - 1000));
  CHECK(run.lets_members_in());
  CHECK(eventually([&] { return taken_at(run.control) <= kMostWaiting + 4; }));
  const std::int64_t taken = resident_mebibytes() - before;
  CAPTURE(taken);
  CHECK(taken <= kMostMebibytesOfStrangers);
  run.check_unharmed();
}

TEST_CASE("five hundred mute connections hold nobody up", "[integration][processes][hostile]") {
  Run run;
  const std::vector<std::uint16_t> ports = run.ports();
  const Crowd crowd(run.control, 500);
  run.during_a_step([&] { CHECK(run.lets_members_in()); });
  run.check_unharmed();
}

TEST_CASE(
    "connections beyond the limit of open files are refused, and taken again when they go "
    "(TD-1)",
    "[integration][processes][hostile]") {
  Run run;
  std::optional<Crowd> crowd;
  SECTION("at the driver's control port") {
    const FileLimit limit(getpid(), kSpareDescriptors + 40);
    crowd.emplace(run.control, 300);
    run.during_a_step([&] {
      CHECK_FALSE(run.lets_members_in());
      CHECK(has_free_file());
    });
    crowd.reset();
    CHECK(eventually([&] { return run.lets_members_in(); }));
  }
  SECTION("at a worker's, whose ways to others have been used") {
    run.during_a_step([] {});
    const WorkerPlace worker = run.cluster.workers()[0];
    const FileLimit limit(static_cast<pid_t>(worker.process), 40);
    crowd.emplace(port_of(worker.address), 300);
    run.during_a_step([] {});
    run.during_a_step([] {});
    crowd.reset();
  }
  run.check_unharmed();
}

// ---- another build ------------------------------------------------------------------------------

/// Replaces the worker program: says what it was told, waits, and ends with exit status 3. The test
/// itself joins as the worker.
class Stand {
 public:
  Stand() { std::filesystem::permissions(script_, std::filesystem::perms::owner_all); }

  [[nodiscard]] const std::string& program() const { return script_; }
  void end() const { (void)folder_.write("go", ""); }

  /// Requires: a cluster of this process is starting it.
  [[nodiscard]] AdmissionActor find_driver(ActorHost*& host) const {
    return find_driver(host, told().at("--credentials"));
  }
  /// Shows other credentials than those of the worker.
  [[nodiscard]] AdmissionActor find_driver(ActorHost*& host, const std::string& credentials) const {
    host = &open_control_plane(load_credentials(credentials), {});
    return find_admission(*host, "127.0.0.1", port_of(told().at("--join")), kPatience);
  }
  /// Returns the worker's options.
  [[nodiscard]] std::map<std::string, std::string> told() const {
    REQUIRE(eventually([&] { return std::filesystem::exists(folder_.path() + "/told"); }));
    std::istringstream told(read_text_file(folder_.path() + "/told"));
    std::map<std::string, std::string> said;
    std::string option;
    told >> option;
    while (told >> option) {
      told >> said[option];
    }
    return said;
  }

 private:
  TemporaryFolder folder_;
  std::string script_ =
      folder_.write("worker",
                    "#!/bin/sh\necho \"$@\" > " + folder_.path() + "/part\nmv " + folder_.path() +
                        "/part " + folder_.path() + "/told\nwhile [ ! -e " + folder_.path() +
                        "/go ]; do sleep 0.05; done\nexit 3\n");
};

TEST_CASE("a worker of another build is refused, and both sides say why",
          "[integration][processes][hostile]") {
  const Stand stand;
  auto driver = std::async(std::launch::async, [&]() -> std::string {
    const Program program = make_program({.stages = 1});
    try {
      const Trainer trainer(Cluster::spawn(1, {.program = stand.program()}),
                            program,
                            make_schedule("1f1b", program),
                            Sgd{});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  });
  ActorHost* host = nullptr;
  const AdmissionActor admission = stand.find_driver(host);
  const auto greet = [&](const Hello& hello) {
    return ask<Welcome>(*host, admission, "the driver", kPatience, hello).get();
  };
  const auto join = [&] {
    return ask<Joined>(*host, admission, "the driver", kPatience, Join{.place = 0}).get().error;
  };
  REQUIRE_FALSE(join().empty());
  CHECK_THAT(to_error(join()).what(), ContainsSubstring("which build it is"));
  CHECK(greet({.fingerprint = "older"}).refusal == "it is another build");
  const Welcome welcome = greet({.protocol = kProtocol + 1, .fingerprint = build_fingerprint()});
  CHECK(welcome.refusal == "it speaks another protocol");
  CHECK(welcome.protocol == kProtocol);
  CHECK(welcome.fingerprint == build_fingerprint());
  CHECK_THAT(to_error(join()).what(), ContainsSubstring("which build it is"));  // still refused
  stand.end();
  CHECK_THAT(
      driver.get(),
      ContainsSubstring("exit status 3 before it had joined: it speaks another protocol (the "
                        "worker: protocol " +
                        std::to_string(kProtocol + 1)) &&
          ContainsSubstring("the driver: protocol " + std::to_string(kProtocol)));
}

TEST_CASE("a worker whose tensor is lost on its way to the driver is ended, and named",
          "[integration][processes][hostile]") {
  const Stand stand;
  const std::shared_ptr<Fleet> fleet =
      std::make_shared<Fleet>(SpawnOptions{.program = stand.program()});
  auto joined = std::async(std::launch::async, [&] { fleet->require(1); });
  ActorHost* host = nullptr;
  const AdmissionActor admission = stand.find_driver(host);
  RawPeer peer;
  (void)ask<Welcome>(
      *host, admission, "the driver", kPatience, Hello{.fingerprint = build_fingerprint()})
      .get();
  caf::scoped_actor worker(host->system());  // its end would be the worker's
  bool has_joined = false;
  worker->request(admission, kPatience, Join{.place = 0, .port = peer.address()})
      .receive([&](const Joined& answer) { has_joined = answer.error.empty(); },
               [](const caf::error&) {});
  REQUIRE(has_joined);
  joined.get();
  fleet->port()->admit(peer.address());
  peer.connect(*fleet->port());
  peer.send({"no header", "bytes"});
  const Future<std::string> cause = fleet->places().cause_of_end({0, 0});
  REQUIRE(cause.wait_until(std::chrono::steady_clock::now() + kPatience));
  CHECK_THAT(cause.get(),
             ContainsSubstring("ended by the driver") && ContainsSubstring("malformed"));
  CHECK(eventually([&] { return kill(static_cast<pid_t>(fleet->who(0).process), 0) != 0; }));
}

TEST_CASE("a worker's certificate makes no driver, and the driver's no worker",
          "[integration][processes][hostile]") {
  Run run;
  const std::string folder =
      std::filesystem::path(run.member.certificate).parent_path().parent_path().string();
  run.during_a_step([&] {
    ActorHost& false_worker = open_control_plane(load_credentials(folder + "/driver"), {});
    CHECK_THROWS_WITH((void)find_admission(false_worker, "127.0.0.1", run.control, kPatience),
                      ContainsSubstring("that this process has a worker's"));
  });
  run.during_a_step([&] {
    ActorHost& thief = open_control_plane(load_credentials(folder + "/worker-0"), {});
    const AdmissionActor trap =
        thief.system().spawn([](AdmissionActor::pointer) -> AdmissionActor::behavior_type {
          return {[](const Hello&) {
                    FAIL_CHECK("greeted");
                    return Welcome{};
                  },
                  [](const Join&) { return Joined{}; },
                  [](const PeerCut&) {}};
        });
    const std::uint16_t port = publish(thief, trap, std::make_shared<PeerNodes>(), "127.0.0.1");
    CHECK_THROWS_WITH((void)run_worker_process({.host = "127.0.0.1",
                                                .port = port,
                                                .credentials = folder + "/worker-1",
                                                .patience = kPatience}),
                      ContainsSubstring("has the driver's certificate"));
    unpublish(thief, trap, port);
    caf::anon_send_exit(trap, caf::exit_reason::user_shutdown);
  });
  run.check_unharmed();
}

TEST_CASE("a worker that joins as another is refused by both sides, and its place waits on",
          "[integration][processes][hostile]") {
  const Stand stand;
  const std::shared_ptr<Fleet> fleet =
      std::make_shared<Fleet>(SpawnOptions{.program = stand.program()});
  auto joined = std::async(std::launch::async, [&] { fleet->require(1); });
  const std::filesystem::path own = stand.told().at("--credentials");
  /// Returns why the process is refused.
  const auto join = [](ActorHost& host, const AdmissionActor& door, caf::scoped_actor& process) {
    (void)ask<Welcome>(
        host, door, "the driver", kPatience, Hello{.fingerprint = build_fingerprint()})
        .get();
    std::string refused = "no answer";
    process->request(door, kPatience, Join{.place = 0})
        .receive(
            [&](const Joined& answer) {
              refused = answer.error.empty() ? "" : to_error(answer.error).what();
            },
            [](const caf::error&) {});
    return refused;
  };
  ActorHost* host = nullptr;
  AdmissionActor door = stand.find_driver(host, (own.parent_path() / "worker-1").string());
  caf::scoped_actor thief(host->system());
  CHECK_THAT(join(*host, door, thief),
             ContainsSubstring("the certificate of this process is that of worker-1"));
  CHECK_THAT(fleet->places().missing_of({0}).refusal,
             ContainsSubstring("certificate of worker-1 asked for the place of worker-0"));
  door = stand.find_driver(host);
  caf::scoped_actor worker(host->system());
  CHECK(join(*host, door, worker).empty());
  joined.get();
}

TEST_CASE("a worker leaves a driver of another build, and says why",
          "[integration][processes][hostile]") {
  const TemporaryCredentials credentials(1);
  ActorHost& host = open_control_plane(load_credentials(credentials.dir() + "/driver"), {});
  const auto join = [&](std::uint16_t port) {
    (void)run_worker_process({.host = "127.0.0.1",
                              .port = port,
                              .credentials = credentials.dir() + "/worker-0",
                              .patience = kPatience});
  };
  Welcome answer;
  std::string expected;
  SECTION("that refuses it") {
    answer = {.fingerprint = "newer", .refusal = "it is another build"};
    expected = "does not admit this worker: it is another build";
  }
  SECTION("that does not notice") {
    answer = {.fingerprint = "newer"};
    expected = "it is another build";
  }
  SECTION("that speaks another protocol") {
    answer = {.protocol = kProtocol + 1, .fingerprint = build_fingerprint()};
    expected = "it speaks another protocol";
  }
  if (!expected.empty()) {
    const AdmissionActor admission =
        host.system().spawn([answer](AdmissionActor::pointer) -> AdmissionActor::behavior_type {
          return {[answer](const Hello&) { return answer; },
                  [](const Join&) {
                    FAIL_CHECK("joined");
                    return Joined{};
                  },
                  [](const PeerCut&) {}};
        });
    const std::uint16_t port = publish(host, admission, std::make_shared<PeerNodes>(), "127.0.0.1");
    CHECK_THROWS_WITH(
        join(port),
        ContainsSubstring(expected) &&
            ContainsSubstring("the driver: protocol " + std::to_string(answer.protocol)) &&
            ContainsSubstring(answer.fingerprint));
    unpublish(host, admission, port);
    caf::anon_send_exit(admission, caf::exit_reason::user_shutdown);
  }
  SECTION("whose messages are others") {
    using Other = caf::typed_actor<caf::replies_to<Hello>::with<Joined>>;
    const Other other = host.system().spawn([](Other::pointer) -> Other::behavior_type {
      return {[](const Hello&) { return Joined{}; }};
    });
    const auto port = caf::openssl::publish(other, 0, "127.0.0.1");
    REQUIRE(port);
    CHECK_THROWS_WITH(join(*port), ContainsSubstring("no driver of this version"));
    caf::anon_send_exit(other, caf::exit_reason::user_shutdown);
  }
}

}  // namespace
}  // namespace stagecraft::tests
