//! Ultralytics YOLO: a row `3/100 8.6G 2.4 4.2 1.9 627 640: …` for the state of an epoch, below a head that
//! names the losses, and a row `all …` of its validation. Rows are written over as the epoch goes on.

use super::bar::Bar;
use super::number::number;
use super::{Block, Family, FamilyName};

#[derive(Debug, Default)]
pub(super) struct Ultralytics {
    head: Vec<String>,
    open: Option<Block>,
    over: bool,
}

/// The head of a detection; other tasks name more losses, in a head before every epoch.
const DETECTION: &str = "GPU_mem box_loss cls_loss dfl_loss Instances Size";

impl Ultralytics {
    /// For a log that is known to be one, and may be read from the middle.
    pub(super) fn of_a_known_log() -> Self {
        let head = DETECTION.split_whitespace().map(str::to_owned).collect();
        Self { head, ..Self::default() }
    }
}

impl Family for Ultralytics {
    fn name(&self) -> FamilyName {
        FamilyName::Ultralytics
    }

    fn line(&mut self, line: &str, _: Option<&Bar>) -> Option<Block> {
        let mut words = line.split_whitespace();
        let first = words.next()?;
        if first == "Epoch" && line.contains("GPU_mem") {
            self.head = words.map(str::to_owned).collect();
            return None;
        }
        if self.head.is_empty() {
            return None;
        }
        if first == "all" {
            // Images and instances, then precision, recall and the two means of average precision.
            let names = ["images", "instances", "P", "R", "mAP50", "mAP50-95"];
            let block = self.open.as_mut()?;
            for (name, value) in names.iter().zip(words.map_while(number)).skip(2) {
                let label = format!("val/{name}");
                block.extra.retain(|(other, _)| *other != label);
                block.note(&label, value);
            }
            return None;
        }
        if line.contains("epochs completed in") {
            self.over = true;
            return None;
        }
        let (epoch, total) = first.split_once('/')?;
        let (epoch, total): (u64, u64) = (epoch.parse().ok()?, total.parse().ok()?);
        // Memory, and then one number for each loss in the head.
        words.next().filter(|memory| memory.ends_with(['G', 'M', 'K', 'B']))?;
        let names = self.head.iter().skip(1).filter(|name| name.ends_with("loss"));
        let losses: Vec<(String, f64)> =
            names.map_while(|name| Some((name.clone(), number(words.next()?)?))).collect();
        if losses.is_empty() {
            return None;
        }
        let mut before = None;
        if self.open.as_ref().is_none_or(|open| open.iteration != epoch) {
            self.over &= self.open.is_some();
            before = self.open.replace(Block::at(epoch, Some(total)));
        }
        let block = self.open.as_mut()?;
        block.is_last = epoch >= total;
        block.losses = losses;
        before
    }

    fn is_open(&self) -> bool {
        self.open.is_some()
    }

    fn said_the_end(&self) -> bool {
        self.over
    }

    fn end(&mut self) -> Option<Block> {
        self.open.take()
    }
}

#[cfg(test)]
mod tests {
    use super::super::MetricsParser;

    #[test]
    fn the_rows_of_an_epoch_are_one_block() {
        let mut parser = MetricsParser::new();
        parser.push(
            "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n\
             \r        1/2      8.61G       2.42      4.251      1.895        627        640:  50%|█ | 1/2 [00:00<00:00,  2.2it/s]\
             \r        1/2      8.61G       2.40      nan        1.8          627        640: 100%|██| 2/2 [00:01<00:00,  2.2it/s]\n\
             \r                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|██| 1/1\n\
             \r                   all        111        960    0.00534      0.155     0.0172    0.00656\n\
             \r        2/2      8.61G       2.3       4.1        1.7          627        640: 100%|██| 2/2 [00:01<00:00,  2.2it/s]\n\
             2 epochs completed in 0.001 hours.\n"
                .as_bytes(),
        );
        assert_eq!(parser.blocks().len(), 1, "an epoch is complete when the next one begins");
        parser.finish();
        let [first, last] = parser.blocks() else { panic!("{:?}", parser.blocks()) };
        assert_eq!((first.iteration, first.total_iterations), (1, Some(2)));
        assert_eq!(first.not_finite(), ["cls_loss"]);
        assert_eq!(first.extra.last().unwrap(), &("val/mAP50-95".to_owned(), 0.006_56));
        assert_eq!((last.iteration, last.losses[0].1), (2, 2.3));
        assert!(parser.is_finished());
    }
}
