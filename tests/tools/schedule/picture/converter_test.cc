#include "stagecraft/tools/schedule/picture/converter.h"

#include <filesystem>
#include <string>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/environment_variable.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using tools::convert_svg;
using tools::PictureFormat;

constexpr const char* kNamesItself = "echo \"$0 $*\"\nexec /bin/cat\n";

/// Makes a folder with these programs, and makes it all of PATH.
class OwnPath {
 public:
  OwnPath() : path_("PATH", folder_.path()) {}
  OwnPath(const std::string& program, const std::string& script) : OwnPath() {
    add(program, script);
  }

  /// Returns the program's file.
  std::string add(const std::string& program, const std::string& script) const {
    std::string file = folder_.write(program, "#!/bin/sh\n" + script);
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
  }

 private:
  TemporaryFolder folder_;
  EnvironmentVariable path_;
};

std::string message_of_conversion() {
  return refusal([] { (void)convert_svg("<svg/>", PictureFormat::Pdf); }, Errc::UsageFile);
}

TEST_CASE("whichever converter there is gets the picture", "[tools][schedule][show]") {
  for (const char* program : {"rsvg-convert", "inkscape", "cairosvg"}) {
    CAPTURE(program);
    const OwnPath path(program, kNamesItself);
    CHECK_THAT(convert_svg("<svg>1</svg>", PictureFormat::Pdf),
               ContainsSubstring(program) && ContainsSubstring("pdf") &&
                   ContainsSubstring("\n<svg>1</svg>"));
    CHECK_THAT(convert_svg("<svg/>", PictureFormat::Png),
               ContainsSubstring(program) && ContainsSubstring("png"));
  }
}

TEST_CASE("the first converter that can run is used", "[tools][schedule][show]") {
  const OwnPath path;
  path.add("cairosvg", kNamesItself);
  path.add("inkscape", kNamesItself);
  CHECK_THAT(convert_svg("", PictureFormat::Pdf), ContainsSubstring("/inkscape "));
  const std::string first = path.add("rsvg-convert", kNamesItself);
  CHECK_THAT(convert_svg("", PictureFormat::Pdf), ContainsSubstring("/rsvg-convert "));
  std::filesystem::permissions(first, std::filesystem::perms::owner_read);
  CHECK_THAT(convert_svg("", PictureFormat::Pdf), ContainsSubstring("/inkscape "));
}

TEST_CASE("a picture larger than a pipe holds arrives whole", "[tools][schedule][show]") {
  // With pipes, the command would wait for the program, and the program for the command.
  const OwnPath path("rsvg-convert", "/bin/cat\n");
  const std::string picture(1 << 20, 'x');
  CHECK(convert_svg(picture, PictureFormat::Png) == picture);
}

TEST_CASE("the message for a failed converter has the first line of its output",
          "[tools][schedule][show]") {
  {
    const OwnPath path("rsvg-convert", "echo half a picture\necho no fonts >&2\nexit 3\n");
    CHECK_THAT(message_of_conversion(),
               ContainsSubstring("rsvg-convert could not convert the picture: no fonts; write it "
                                 "with --svg FILE"));
  }
  {
    const OwnPath path("rsvg-convert", "exit 0\n");
    CHECK_THAT(message_of_conversion(), ContainsSubstring("it printed no message"));
  }
  const OwnPath path("rsvg-convert", "echo half a picture\nkill -9 $$\n");
  CHECK_THAT(message_of_conversion(), ContainsSubstring("it printed no message"));
}

TEST_CASE("without a converter show names what to install, and leaves the old file",
          "[tools][schedule][show]") {
  const TemporaryFolder folder;
  const std::string pdf = folder.write("x.pdf", "old");
  const OwnPath path;
  check_message(run_schedule({"show", "-", "--pdf", pdf}, "0F0 0B0\n"),
                2,
                {"rsvg-convert, inkscape or cairosvg", "librsvg2-bin"});
  path.add("rsvg-convert", "echo half a picture\nexit 3\n");
  check_message(run_schedule({"show", "-", "--pdf", pdf}, "0F0 0B0\n"),
                2,
                {"rsvg-convert could not convert the picture"});
  CHECK(read_text_file(pdf) == "old");
}

}  // namespace
}  // namespace stagecraft::tests
