#include "stagecraft/base/files/output_place.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Kind = OutputPlace::Kind;
using tests::TemporaryFolder;

std::string complaint(const std::string& path) {
  return refusal([&] { (void)output_place(path); }, Errc::UsageFile);
}

TEST_CASE("output_place says what stands at a path", "[base][output_place]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("file", "x");
  const std::string pipe = folder.path() + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(output_place(file).kind == Kind::File);
  CHECK(output_place(file).path == file);
  CHECK(output_place(folder.path() + "/none").kind == Kind::Absent);
  CHECK(output_place(folder.path()).kind == Kind::Folder);
  CHECK(output_place(folder.path() + "/").kind == Kind::Folder);
  CHECK(output_place(pipe).kind == Kind::Pipe);
  CHECK(output_place(pipe).is_stream());
  CHECK(output_place("/dev/null").kind == Kind::Device);
  CHECK(output_place("/proc/self/fd/1").kind == Kind::Descriptor);
  CHECK(output_place("/dev/stdout").kind == Kind::Descriptor);
}

TEST_CASE("links are followed to their end, even if nothing is there", "[base][output_place]") {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  (void)folder.write("file", "x");
  const std::string base = folder.path() + "/";
  fs::create_symlink("file", base + "to_file");
  fs::create_symlink(base + "to_file", base + "to_link");
  fs::create_symlink("none", base + "dangling");
  fs::create_symlink("/dev/null", base + "to_device");
  CHECK(output_place(base + "to_link").path == base + "file");
  CHECK(output_place(base + "to_link").kind == Kind::File);
  CHECK(output_place(base + "dangling").path == base + "none");
  CHECK(output_place(base + "dangling").kind == Kind::Absent);
  CHECK(output_place(base + "to_device").kind == Kind::Device);
  CHECK(output_place(base + "to_file").folder() == folder.path());
  CHECK(output_place("plain name").folder() == ".");
}

TEST_CASE("an impossible place is refused with the reason", "[base][output_place]") {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const std::string base = folder.path() + "/";
  (void)folder.write("file", "x");
  fs::create_symlink("circle", base + "circle");
  fs::create_symlink("no/such", base + "astray");
  CHECK_THAT(complaint(""), ContainsSubstring("the name is empty"));
  CHECK_THAT(complaint(base + "no/such/file"),
             ContainsSubstring("no folder '" + base + "no/such'"));
  CHECK_THAT(complaint(base + "astray"), ContainsSubstring("no folder '" + base + "no'"));
  CHECK_THAT(complaint(base + "new/"), ContainsSubstring("no folder"));
  CHECK_THAT(complaint(base + "file/x"), ContainsSubstring(std::strerror(ENOTDIR)));
  CHECK_THAT(complaint(base + "circle"), ContainsSubstring(std::strerror(ELOOP)));
  CHECK_THAT(complaint(base + std::string(300, 'x')),
             ContainsSubstring(std::strerror(ENAMETOOLONG)));
}

}  // namespace
}  // namespace stagecraft
