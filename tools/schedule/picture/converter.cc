#include "stagecraft/tools/schedule/picture/converter.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <spawn.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/files/write_all.h"

namespace stagecraft::tools {
namespace {

/// The arguments that make a program read a picture from standard input and write to standard
/// output.
struct Converter {
  const char* name;
  std::vector<std::string> pdf;
  std::vector<std::string> png;
};

const std::vector<Converter>& converters() {
  static const std::vector<Converter> kAll{
      {"rsvg-convert", {"--format=pdf"}, {"--format=png", "--zoom=2"}},
      {"inkscape",
       {"--pipe", "--export-type=pdf", "--export-filename=-"},
       {"--pipe", "--export-type=png", "--export-dpi=192", "--export-filename=-"}},
      {"cairosvg", {"-f", "pdf", "-"}, {"-f", "png", "-s", "2", "-"}}};
  return kAll;
}

/// A file without a name: the program can neither block on a pipe nor leave a file behind.
class HeldFile {
 public:
  HeldFile() : file_(memfd_create("picture", MFD_CLOEXEC)) {
    if (file_ < 0) {
      fail(errno);
    }
  }
  ~HeldFile() { close(file_); }
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;

  [[nodiscard]] int descriptor() const { return file_; }

  /// Writes the bytes; the program reads them from the beginning.
  void fill(std::string_view bytes) const {
    if (const int error = write_all(file_, bytes); error != 0) {
      fail(error);
    }
    lseek(file_, 0, SEEK_SET);
  }

  [[nodiscard]] std::string content() const {
    std::string bytes(static_cast<std::size_t>(lseek(file_, 0, SEEK_END)), '\0');
    for (std::size_t got = 0; got < bytes.size();) {
      const ssize_t more =
          pread(file_, bytes.data() + got, bytes.size() - got, static_cast<off_t>(got));
      if (more <= 0) {
        fail(errno);
      }
      got += static_cast<std::size_t>(more);
    }
    return bytes;
  }

 private:
  [[noreturn]] static void fail(int error) {
    throw Error(Errc::UsageFile,
                fmt::format("cannot store the picture for its conversion: {}",
                            std::generic_category().message(error)));
  }

  int file_;
};

/// Runs the program to its end and returns its status; nothing if there is no such program.
std::optional<int> run(const Converter& converter,
                       const std::vector<std::string>& words,
                       const HeldFile& in,
                       const HeldFile& out,
                       const HeldFile& err) {
  std::vector<char*> arguments{const_cast<char*>(converter.name)};
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err.descriptor(), STDERR_FILENO);
  pid_t pid = -1;
  const int fault = posix_spawnp(&pid, converter.name, &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (fault == ENOENT || fault == EACCES || fault == ENOTDIR) {
    return std::nullopt;
  }
  if (fault != 0) {
    throw Error(
        Errc::UsageFile,
        fmt::format("cannot run {}: {}", converter.name, std::generic_category().message(fault)));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

std::string convert_svg(std::string_view svg, PictureFormat format) {
  for (const Converter& converter : converters()) {
    const HeldFile in;
    const HeldFile out;
    const HeldFile err;
    in.fill(svg);
    const auto& words = format == PictureFormat::Pdf ? converter.pdf : converter.png;
    const std::optional<int> status = run(converter, words, in, out, err);
    if (!status) {
      continue;
    }
    std::string made = out.content();
    if (!WIFEXITED(*status) || WEXITSTATUS(*status) != 0 || made.empty()) {
      const std::string said = err.content();
      throw Error(
          Errc::UsageFile,
          fmt::format("{} could not convert the picture: {}; write it with --svg FILE and "
                      "convert it by hand",
                      converter.name,
                      said.empty() ? "it printed no message" : said.substr(0, said.find('\n'))));
    }
    return made;
  }
  throw Error(Errc::UsageFile,
              "PDF and PNG need a program that converts SVG: rsvg-convert, inkscape or cairosvg, "
              "none of which is on PATH; install one (Debian: apt install librsvg2-bin), or write "
              "--svg or --tikz");
}

}  // namespace stagecraft::tools
