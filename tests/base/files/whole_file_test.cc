#include "stagecraft/base/files/whole_file.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include <linux/fs.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using tests::read_text_file;
using tests::TemporaryFolder;

void write_whole(const std::string& path, const std::string& text) {
  WholeFile file(path);
  file.write(text);
  file.publish();
}

std::string whole_file_complaint(const std::string& path) {
  return refusal([&] { const WholeFile file(path); }, Errc::UsageFile);
}

long entries(const std::string& folder) {
  return std::distance(fs::directory_iterator(folder), {});
}

/// A disk that cannot keep names.
class Forgetful final : public Disk {
 public:
  int synchronize_folder(const std::string& /*path*/) override {
    errno = EIO;
    return -1;
  }
};

mode_t mode_of(const std::string& path) {
  struct stat found {};
  REQUIRE(lstat(path.c_str(), &found) == 0);
  return found.st_mode;
}

}  // namespace

TEST_CASE("a file replaces the old one when it is published, not before (WF-1)",
          "[base][whole_file]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("x", "old");
  WholeFile file(path);
  file.write(std::string("ne"));
  file.write(std::string("w"));
  CHECK(read_text_file(path) == "old");
  file.synchronize();
  CHECK(read_text_file(file.temporary()) == "new");
  CHECK(read_text_file(path) == "old");
  file.publish();
  CHECK(read_text_file(path) == "new");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a file that is dropped leaves nothing behind (WF-2)", "[base][whole_file]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("x", "old");
  {
    WholeFile file(path);
    file.write(std::string(100'000, 'x'));
    WholeFile other(folder.path() + "/y");
    CHECK(entries(folder.path()) == 3);
  }
  CHECK(entries(folder.path()) == 1);
  CHECK(read_text_file(path) == "old");
}

TEST_CASE("a write that fails says why and leaves the old file", "[base][whole_file]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("x", "old");
  struct rlimit before {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  // A write beyond the limit raises a signal that would end the test; it is an error only if the
  // signal is ignored.
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 4096, before.rlim_max };
  std::string message;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  try {
    write_whole(path, std::string(100'000, 'x'));
  } catch (const Error& error) {
    message = error.message();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK_THAT(message, ContainsSubstring(path) && ContainsSubstring(std::strerror(EFBIG)));
  CHECK(read_text_file(path) == "old");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a file whose name alone is not kept is in its place, and the error says so (WF-4)",
          "[base][whole_file]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("x", "old");
  {
    const DiskOfThread forgetful(std::make_shared<Forgetful>());
    CHECK_THAT(refusal([&] { write_whole(path, "new"); }, Errc::UsageFile),
               ContainsSubstring("'" + path + "' is in its place, but its name may not outlive") &&
                   ContainsSubstring("Input/output error"));
  }
  CHECK(read_text_file(path) == "new");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("permissions are kept, and a new file's are those of the umask (WF-3)",
          "[base][whole_file]") {
  const TemporaryFolder folder;
  const std::string old = folder.write("old", "x"), fresh = folder.path() + "/new";
  REQUIRE(chmod(old.c_str(), 0604) == 0);
  const mode_t mask = umask(027);
  write_whole(old, "y");
  write_whole(fresh, "y");
  umask(mask);
  CHECK((mode_of(old) & 07777U) == 0604);
  CHECK((mode_of(fresh) & 07777U) == 0640);
}

TEST_CASE("a file that is being written is as private as the one it replaces",
          "[base][whole_file]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("x", "old");
  REQUIRE(chmod(path.c_str(), 0600) == 0);
  const WholeFile file(path);
  CHECK((mode_of(file.temporary()) & 07777U) == 0600);
}

TEST_CASE("links stay links, and their target is replaced or made (WF-3)", "[base][whole_file]") {
  const TemporaryFolder folder, other;
  const std::string target = other.write("target", "old");
  const std::string link = folder.path() + "/link", dangling = folder.path() + "/dangling";
  fs::create_symlink(target, link);
  fs::create_symlink(other.path() + "/none", dangling);
  write_whole(link, "new");
  write_whole(dangling, "new");
  CHECK(S_ISLNK(mode_of(link)));
  CHECK(S_ISLNK(mode_of(dangling)));
  CHECK(read_text_file(target) == "new");
  CHECK(read_text_file(other.path() + "/none") == "new");
  CHECK(entries(folder.path()) == 2);
  CHECK(entries(other.path()) == 2);
}

TEST_CASE("a place that is not a regular file is refused and does not change",
          "[base][whole_file]") {
  const TemporaryFolder folder;
  const std::string base = folder.path() + "/";
  CHECK_THAT(whole_file_complaint(folder.path()), ContainsSubstring("is a directory"));

  REQUIRE(mkfifo((base + "pipe").c_str(), 0600) == 0);
  CHECK_THAT(whole_file_complaint(base + "pipe"), ContainsSubstring("is a pipe"));
  fs::create_symlink("pipe", base + "link");
  CHECK_THAT(whole_file_complaint(base + "link"), ContainsSubstring("is a pipe"));
  CHECK(S_ISFIFO(mode_of(base + "pipe")));

  const int socket_fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, (base + "socket").c_str(), sizeof(address.sun_path) - 1);
  REQUIRE(bind(socket_fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  close(socket_fd);
  CHECK_THAT(whole_file_complaint(base + "socket"), ContainsSubstring("is a socket"));

  CHECK_THAT(whole_file_complaint("/dev/stdout"), ContainsSubstring("is an open descriptor"));
  CHECK(entries(folder.path()) == 3);
}

TEST_CASE("a device is refused and does not change", "[base][whole_file]") {
  const TemporaryFolder folder;
  const std::string device = folder.path() + "/device";
  // Makes a node of its own, equal to /dev/full, so that the test uses no shared node.
  if (mknod(device.c_str(), S_IFCHR | 0600, makedev(1, 7)) != 0) {
    SKIP("no device node can be made here: " << std::strerror(errno));
  }
  CHECK_THAT(whole_file_complaint(device), ContainsSubstring("is a device"));
  CHECK(S_ISCHR(mode_of(device)));
}

TEST_CASE("a folder that cannot be written is refused at once, also for root",
          "[base][whole_file]") {
  // No process can make a file in it; access() would tell root the contrary.
  CHECK_THAT(whole_file_complaint("/proc/x"), ContainsSubstring("'/proc/x' cannot be written"));
  CHECK_THAT(whole_file_complaint("/no/such/x"), ContainsSubstring("no folder '/no/such'"));
}

TEST_CASE("a file that may not be written is not replaced", "[base][whole_file]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("x", "old");
  REQUIRE(chmod(path.c_str(), 0444) == 0);
  if (geteuid() != 0) {
    CHECK_THAT(whole_file_complaint(path), ContainsSubstring(std::strerror(EACCES)));
    return;
  }
  // Root may write a file regardless of its permissions, but not an immutable file.
  write_whole(path, "new");
  CHECK((mode_of(path) & 07777U) == 0444);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  int flags = FS_IMMUTABLE_FL;
  if (ioctl(fd, FS_IOC_SETFLAGS, &flags) != 0) {
    close(fd);
    SKIP("no file can be made immutable here: " << std::strerror(errno));
  }
  CHECK_THAT(whole_file_complaint(path), ContainsSubstring(std::strerror(EPERM)));
  flags = 0;
  ioctl(fd, FS_IOC_SETFLAGS, &flags);
  close(fd);
}

TEST_CASE("a file with the longest possible name is written", "[base][whole_file]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/" + std::string(255, 'n');
  write_whole(path, "x");
  CHECK(read_text_file(path) == "x");
}

}  // namespace stagecraft
