/// What a folder of images holds, by name: its images with their classes, and its captions.
///
///     DIR/cat/1.png          class "cat"; the first folder counts, further ones may follow
///     DIR/dog/brown/7.jpg    class "dog"
///     DIR/9.png              class ""
///     DIR/captions.txt       cat/1.png<TAB>a cat on a chair
///
/// Nothing is decoded here. In the order of the bytes of their names, so that every file system
/// gives the same order.
#pragma once

#include <string>
#include <vector>

namespace stagecraft::tools {

struct ImageFile {
  std::string path;  ///< within the folder
  std::string label;
};

struct Caption {
  std::string path;  ///< of its image, within the folder
  std::string text;
};

/// Every file but hidden ones and captions.txt; links to folders are not followed.
/// Errors: UsageFile for a folder that cannot be read, or has no image.
[[nodiscard]] std::vector<ImageFile> images_in(const std::string& folder);

/// The lines of its captions.txt that are not empty; an image may have several.
/// Errors: UsageFile, with the line, for one that is no path, tab and caption, and for a path that
///         leaves the folder or leads to no file.
[[nodiscard]] std::vector<Caption> captions_in(const std::string& folder);

}  // namespace stagecraft::tools
