#include "stagecraft/tests/faults/simulated_disk.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

namespace stagecraft::tests {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) {
  return fs::path(path).parent_path().string();
}

}  // namespace

/// Replay repeats changes, and tells those that the end of the machine may undo.
class SimulatedDisk::Replay {
 public:
  explicit Replay(Lie lie) : lie_(lie) {}

  void add(const Change& change) {
    switch (change.kind) {
      case Change::Kind::Create:
        files_[change.file] = {};
        names_.push_back({folder_of(change.path), {{change.path, change.file}}});
        break;
      case Change::Kind::Write:
        files_[change.file].written += change.to;
        break;
      case Change::Kind::Synchronize:
        if (lie_ != Lie::OfFiles) {
          files_[change.file].kept = files_[change.file].written;
        }
        break;
      case Change::Kind::Rename:
        names_.push_back(
            {folder_of(change.path), {{change.to, number_of(change.path)}, {change.path, kNone}}});
        break;
      case Change::Kind::Remove:
        names_.push_back({folder_of(change.path), {{change.path, kNone}}});
        break;
      case Change::Kind::MakeFolder:
        names_.push_back({folder_of(change.path), {{change.path, kFolder}}});
        break;
      case Change::Kind::SynchronizeFolder:
        if (lie_ != Lie::OfFolders) {
          keep_names(change.path);
        }
    }
  }

  /// Returns one of the ends of the machine.
  [[nodiscard]] Remains remains(const Choose& choose) const {
    std::map<std::string, int> named = kept_;
    for (const NameChange& change : names_) {
      if (choose(2) == 1) {
        assign(change, named);
      }
    }
    std::set<int> numbers;  // in this order, because names have random parts
    for (const auto& [path, number] : named) {
      numbers.insert(number);
    }
    std::map<int, std::string> contents;
    for (const int number : numbers) {
      if (number != kFolder) {
        contents[number] = content_of(files_.at(number), choose);
      }
    }
    Remains left;
    for (const auto& [path, number] : named) {  // folders come before what is in them
      const std::string folder = folder_of(path);
      if (folder.empty() || left.contains(folder)) {
        left[path] = number == kFolder ? std::nullopt : std::optional(contents.at(number));
      }
    }
    return left;
  }

 private:
  static constexpr int kNone = 0, kFolder = -1;  ///< numbers of files begin with 1

  struct File {
    std::string kept, written;
  };
  /// NameChange changes names of a folder, all or none.
  struct NameChange {
    std::string folder;
    std::vector<std::pair<std::string, int>> numbers;
  };

  static void assign(const NameChange& change, std::map<std::string, int>& named) {
    for (const auto& [path, number] : change.numbers) {
      if (number == kNone) {
        named.erase(path);
      } else {
        named[path] = number;
      }
    }
  }

  [[nodiscard]] int number_of(const std::string& path) const {
    std::map<std::string, int> named = kept_;
    for (const NameChange& change : names_) {
      assign(change, named);
    }
    return named.at(path);
  }

  void keep_names(const std::string& folder) {
    for (const NameChange& change : names_) {
      if (change.folder == folder) {
        assign(change, kept_);
      }
    }
    std::erase_if(names_, [&](const NameChange& change) { return change.folder == folder; });
  }

  /// Returns a content that the file may have.
  static std::string content_of(const File& file, const Choose& choose) {
    const std::size_t kept = file.kept.size(), all = file.written.size(), half = (kept + all) / 2;
    if (kept == all) {
      return file.written;
    }
    std::string content = file.written;
    switch (choose(5)) {
      case 0:
        break;
      case 1:
        content.resize(kept);
        break;
      case 2:
        content.resize(half);
        break;
      case 3:
        std::fill(content.begin() + static_cast<std::ptrdiff_t>(kept), content.end(), '\0');
        break;
      default:
        std::fill(content.begin() + static_cast<std::ptrdiff_t>(half), content.end(), '\0');
    }
    return content;
  }

  const Lie lie_;
  std::map<int, File> files_;
  std::map<std::string, int> kept_;  ///< names that survive
  std::vector<NameChange> names_;    ///< changes that may not
};

SimulatedDisk::SimulatedDisk(std::string folder, Lie lie) : folder_(std::move(folder)), lie_(lie) {}

void SimulatedDisk::strike(DiskFault fault) {
  const std::scoped_lock lock(mutex_);
  faults_.push_back(fault);
}

void SimulatedDisk::make_room() {
  const std::scoped_lock lock(mutex_);
  is_full_ = false;
}

std::int64_t SimulatedDisk::operations() const {
  const std::scoped_lock lock(mutex_);
  return operations_;
}

int SimulatedDisk::struck() const {
  const std::scoped_lock lock(mutex_);
  return struck_;
}

std::vector<Remains> SimulatedDisk::remains_after(std::int64_t operations) const {
  const std::scoped_lock lock(mutex_);
  Replay replay(lie_);
  for (const Change& change : changes_) {
    if (change.operation < operations) {
      replay.add(change);
    }
  }
  struct Choice {
    std::size_t chosen, count;
  };
  std::vector<Remains> all;
  std::vector<Choice> choices;  // the last one changes fastest
  do {
    std::size_t next = 0;
    all.push_back(replay.remains([&](std::size_t count) {
      if (next == choices.size()) {
        choices.push_back({0, count});
      }
      return choices[next++].chosen;
    }));
    while (!choices.empty() && ++choices.back().chosen == choices.back().count) {
      choices.pop_back();
    }
  } while (!choices.empty());
  return all;
}

void SimulatedDisk::end_machine(const Choose& choose) {
  const std::scoped_lock lock(mutex_);
  Replay replay(lie_);
  for (const Change& change : changes_) {
    replay.add(change);
  }
  const Remains left = replay.remains(choose);
  lay_out(left, folder_);
  changes_ = {};
  std::set<std::string> folders;
  for (const auto& [path, content] : left) {
    folders.insert(folder_of(path));
    if (content) {
      changes_.push_back({operations_ - 1, Change::Kind::Create, ++files_, path});
      changes_.push_back({operations_ - 1, Change::Kind::Write, files_, "", *content});
      changes_.push_back({operations_ - 1, Change::Kind::Synchronize, files_});
    } else {
      changes_.push_back({operations_ - 1, Change::Kind::MakeFolder, 0, path});
    }
  }
  for (const std::string& folder : folders) {
    changes_.push_back({operations_ - 1, Change::Kind::SynchronizeFolder, 0, folder});
  }
}

int SimulatedDisk::create(const std::string& path, mode_t mode) {
  const auto operation = succeeds(true);
  if (!operation) {
    return -1;
  }
  const std::scoped_lock lock(mutex_);
  const int file = Disk::create(path, mode);
  if (file >= 0) {
    numbers_[file] = ++files_;
    changes_.push_back({*operation, Change::Kind::Create, files_, inside(path)});
  }
  return file;
}

ssize_t SimulatedDisk::write(int file, std::span<const char> bytes) {
  const auto [operation, fault] = begin();
  const std::scoped_lock lock(mutex_);
  if (fault == DiskFault::Kind::Short && bytes.size() > 1) {
    bytes = bytes.first(bytes.size() / 2);
  } else if (fault == DiskFault::Kind::Fail || is_full_) {
    errno = ENOSPC;
    return -1;
  }
  std::string damaged;
  if (fault == DiskFault::Kind::Damage && !bytes.empty()) {
    damaged.assign(bytes.data(), bytes.size());
    damaged[bytes.size() / 2] ^= 1;
    bytes = damaged;
  }
  const ssize_t count = Disk::write(file, bytes);
  if (count > 0) {
    changes_.push_back({.operation = operation,
                        .kind = Change::Kind::Write,
                        .file = numbers_.at(file),
                        .to = std::string(bytes.data(), static_cast<std::size_t>(count))});
  }
  return count;
}

ssize_t SimulatedDisk::read(int file, std::size_t at, std::span<char> bytes) {
  const auto fault = begin().fault;
  const std::scoped_lock lock(mutex_);
  if (fault == DiskFault::Kind::Fail) {
    errno = EIO;
    return -1;
  }
  if (fault == DiskFault::Kind::Cut) {
    return 0;
  }
  const ssize_t count = Disk::read(file, at, bytes);
  if (count > 0 && fault == DiskFault::Kind::Damage) {
    bytes[static_cast<std::size_t>(count) / 2] ^= 2;  // not what a write has damaged
  }
  return count;
}

int SimulatedDisk::synchronize(int file) {
  const auto operation = succeeds(false);
  if (!operation) {
    return -1;
  }
  const std::scoped_lock lock(mutex_);
  changes_.push_back({*operation, Change::Kind::Synchronize, numbers_.at(file)});
  return 0;
}

int SimulatedDisk::rename(const std::string& from, const std::string& to) {
  const auto operation = succeeds(false);
  if (!operation) {
    return -1;
  }
  const std::scoped_lock lock(mutex_);
  const int result = Disk::rename(from, to);
  if (result == 0) {
    changes_.push_back({*operation, Change::Kind::Rename, 0, inside(from), inside(to)});
  }
  return result;
}

int SimulatedDisk::remove(const std::string& path) {
  const auto operation = succeeds(false);
  if (!operation) {
    return -1;
  }
  const std::scoped_lock lock(mutex_);
  const int result = Disk::remove(path);
  if (result == 0) {
    changes_.push_back({*operation, Change::Kind::Remove, 0, inside(path)});
  }
  return result;
}

int SimulatedDisk::make_folder(const std::string& path) {
  const auto operation = succeeds(true);
  if (!operation) {
    return -1;
  }
  const std::scoped_lock lock(mutex_);
  const int result = Disk::make_folder(path);
  if (result == 0) {
    changes_.push_back({*operation, Change::Kind::MakeFolder, 0, inside(path)});
  }
  return result;
}

int SimulatedDisk::synchronize_folder(const std::string& path) {
  const auto operation = succeeds(false);
  if (!operation) {
    return -1;
  }
  const std::scoped_lock lock(mutex_);
  changes_.push_back({*operation, Change::Kind::SynchronizeFolder, 0, inside(path)});
  return 0;
}

SimulatedDisk::Begun SimulatedDisk::begin() {
  const std::scoped_lock lock(mutex_);
  const std::int64_t operation = operations_++;
  std::optional<DiskFault::Kind> strikes;
  for (const DiskFault& fault : faults_) {
    if (fault.operation == operation) {
      ++struck_;
      is_full_ = is_full_ || fault.kind == DiskFault::Kind::Full;
      strikes = fault.kind;
    }
  }
  return {operation, strikes};
}

std::optional<std::int64_t> SimulatedDisk::succeeds(bool needs_room) {
  const auto [operation, fault] = begin();
  const std::scoped_lock lock(mutex_);
  if (fault == DiskFault::Kind::Fail || (needs_room && is_full_)) {
    errno = needs_room ? ENOSPC : EIO;
    return std::nullopt;
  }
  return operation;
}

std::string SimulatedDisk::inside(const std::string& path) const {
  const std::string relative = fs::path(path).lexically_relative(folder_).string();
  return path.empty() || relative == "." ? "" : relative;
}

void lay_out(const Remains& remains, const std::string& folder) {
  fs::create_directory(folder);
  const std::vector<fs::path> before(fs::recursive_directory_iterator(folder), {});
  for (auto path = before.rbegin(); path != before.rend(); ++path) {  // what is in a folder first
    const auto kept = remains.find(path->lexically_relative(folder).string());
    // A folder stays if it is needed: some file systems wait for the disk when one is removed.
    if (!fs::is_directory(*path) || kept == remains.end() || kept->second) {
      fs::remove(*path);
    }
  }
  for (const auto& [path, content] : remains) {
    const fs::path place = fs::path(folder) / path;
    if (content) {
      std::ofstream(place, std::ios::binary) << *content;
    } else {
      fs::create_directory(place);
    }
  }
}

}  // namespace stagecraft::tests
