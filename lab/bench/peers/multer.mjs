/** multer on Express, to files, as its README has it: `node multer.mjs FOLDER`. */
import express from 'express';
import multer from 'multer';

const app = express();
app.post('/chunk', multer({ dest: process.argv[2] }).single('file'), (req, res) => res.json({ size: req.file.size }));
const listening = app.listen(0, '127.0.0.1', () =>
  console.log(`peer ready http://127.0.0.1:${listening.address().port}`),
);
