#include "stagecraft/tools/images/image_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCaptions = "captions.txt";
// Longest line of captions.txt, so that a file without line ends does no harm.
constexpr std::size_t kMostLineBytes = 64 * 1024;

[[noreturn]] void refuse(const std::string& message) {
  throw Error(Errc::UsageFile, message);
}

bool is_hidden(const fs::path& path) {
  return path.filename().native().starts_with('.');
}

void check_folder(const std::string& folder) {
  std::error_code ignored;
  const auto status = fs::status(folder, ignored);
  if (!fs::is_directory(status)) {
    refuse(fmt::format("--images expects a folder, found {} at '{}'",
                       fs::exists(status) ? "a file" : "nothing",
                       folder));
  }
}

ImageFile image_file(const fs::path& within) {
  const bool in_sub_folder = within.has_parent_path();
  return {.path = within.generic_string(),
          .label = in_sub_folder ? within.begin()->string() : std::string()};
}

/// Errors: UsageFile for a path that leads out of the folder, even if it exists.
void check_within(const fs::path& path, const std::string& where) {
  if (path.is_absolute() || std::ranges::find(path, fs::path("..")) != path.end()) {
    refuse(
        fmt::format("{}: expected a path within the folder of --images, found '{}'; captions "
                    "name images there",
                    where,
                    path.string()));
  }
}

}  // namespace

std::vector<ImageFile> images_in(const std::string& folder) {
  check_folder(folder);
  std::vector<ImageFile> files;
  std::error_code failure;
  auto at = fs::recursive_directory_iterator(folder, failure);
  for (; !failure && at != fs::recursive_directory_iterator(); at.increment(failure)) {
    if (is_hidden(at->path())) {
      at.disable_recursion_pending();
      continue;
    }
    std::error_code ignored;
    const fs::path within = at->path().lexically_relative(folder);
    if (!at->is_directory(ignored) && within != kCaptions) {
      files.push_back(image_file(within));
    }
  }
  if (failure) {
    refuse(fmt::format("--images expects a folder that can be read, found '{}' with: {}",
                       folder,
                       failure.message()));
  }
  if (files.empty()) {
    refuse(fmt::format("--images expects PNG and JPEG files, found none in '{}'", folder));
  }
  std::ranges::sort(files, {}, &ImageFile::path);
  return files;
}

std::vector<Caption> captions_in(const std::string& folder) {
  check_folder(folder);
  const std::string path = (fs::path(folder) / kCaptions).string();
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    refuse(
        fmt::format("--images expects captions, found no readable '{}'; write it with a line "
                    "for each image: its path in the folder, a tab and its caption",
                    path));
  }
  std::vector<Caption> captions;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    const std::string where = fmt::format("{}:{}", path, ++number);
    if (line.ends_with('\r')) {
      line.pop_back();
    }
    if (line.empty()) {
      continue;
    }
    const std::size_t tab = line.find('\t');
    if (tab == 0 || tab == std::string::npos || tab + 1 == line.size() ||
        line.size() > kMostLineBytes) {
      refuse(fmt::format("{}: expected an image's path, a tab and its caption, found '{}'",
                         where,
                         line.substr(0, 80)));
    }
    Caption caption{line.substr(0, tab), line.substr(tab + 1)};
    check_within(caption.path, where);
    std::error_code ignored;
    if (!fs::is_regular_file(fs::path(folder) / caption.path, ignored)) {
      refuse(
          fmt::format("{}: expected the path of an image in '{}', found no file '{}'; correct "
                      "the path, or remove the line",
                      where,
                      folder,
                      caption.path));
    }
    captions.push_back(std::move(caption));
  }
  if (captions.empty()) {
    refuse(
        fmt::format("--images expects captions, found none in '{}'; write a line for each "
                    "image: its path in the folder, a tab and its caption",
                    path));
  }
  return captions;
}

}  // namespace stagecraft::tools
