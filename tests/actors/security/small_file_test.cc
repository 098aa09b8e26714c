#include "stagecraft/actors/security/small_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::security {
namespace {

namespace fs = std::filesystem;

using Catch::Matchers::ContainsSubstring;

std::string file_fault(const std::string& path) {
  const std::string message = refusal([&] { (void)read_small_file(path); }, Errc::UsageFile);
  CHECK_THAT(message, ContainsSubstring("'" + path + "'"));
  return message;
}

std::string folder_fault(const std::string& path) {
  return refusal([&] { (void)find_folder(path); }, Errc::UsageFile);
}

TEST_CASE("a file is read with its mode and its owner, also through a link", "[security][files]") {
  const tests::TemporaryFolder folder;
  const std::string path = folder.write("key.pem", std::string("a\0b", 3));
  chmod(path.c_str(), 0640);
  fs::create_symlink(path, folder.path() + "/link");
  for (const std::string& name : {path, folder.path() + "/link"}) {
    const SmallFile file = read_small_file(name);
    CHECK(file.text == std::string("a\0b", 3));
    CHECK(mode_text(file.mode) == "0640");
    CHECK(file.owner == geteuid());
  }
}

TEST_CASE("a file has at most 64 KiB", "[security][files]") {
  const tests::TemporaryFolder folder;
  const std::string most(std::size_t{64} << 10U, 'x');
  CHECK(read_small_file(folder.write("most", most)).text == most);
  CHECK_THAT(file_fault(folder.write("more", most + "x")),
             ContainsSubstring("has more than 64.0 KiB"));
  CHECK(read_small_file(folder.write("none", "")).text.empty());
}

TEST_CASE("what is no file is named, and never opened", "[security][files][bad-input]") {
  const tests::TemporaryFolder folder;
  const std::string base = folder.path();
  CHECK_THAT(file_fault(base + "/absent"), ContainsSubstring("is missing; a process needs ca.pem"));
  fs::create_symlink(base + "/absent", base + "/dangling");
  CHECK_THAT(file_fault(base + "/dangling"), ContainsSubstring("is a link to nothing"));
  CHECK_THAT(file_fault(base), ContainsSubstring("found a folder"));
  REQUIRE(mkfifo((base + "/pipe").c_str(), 0600) == 0);  // to open it would wait for a writer
  CHECK_THAT(file_fault(base + "/pipe"), ContainsSubstring("found a pipe"));
  CHECK_THAT(file_fault("/dev/zero"), ContainsSubstring("found a device"));
  CHECK_THAT(file_fault(folder.write("file", "") + "/below"), ContainsSubstring("cannot be read"));
}

TEST_CASE("a folder has its mode and its owner", "[security][files]") {
  const tests::TemporaryFolder folder;
  chmod(folder.path().c_str(), 01750);
  const Folder found = find_folder(folder.path());
  CHECK(mode_text(found.mode) == "1750");
  CHECK(found.owner == geteuid());
  CHECK_THAT(folder_fault(folder.path() + "/none"), ContainsSubstring("there is no folder"));
  CHECK_THAT(folder_fault(folder.write("file", "x")), ContainsSubstring("is a file, expected"));
  CHECK_THAT(folder_fault("/dev/null"), ContainsSubstring("is a device, expected the folder"));
}

TEST_CASE("a name exists also if it is a link to nothing", "[security][files]") {
  const tests::TemporaryFolder folder;
  const std::string link = folder.path() + "/link";
  CHECK_FALSE(exists(link));
  fs::create_symlink("nowhere", link);
  CHECK(exists(link));
}

TEST_CASE("slashes at the end of a path are no part of a name", "[security][files]") {
  CHECK(without_slashes("a/b//") == "a/b");
  CHECK(without_slashes("a") == "a");
  CHECK(without_slashes("///") == "/");
  CHECK(without_slashes("").empty());
}

}  // namespace
}  // namespace stagecraft::security
